# SPDX-License-Identifier: Apache-2.0
# Clients of others: Pyroscope's own, which pushes and queries by Connect, gRPC and gRPC-Web and gets
# the same each time; Arrow's writer in Go with the schema of Parca's agent; gRPC's own client in Go,
# whose balancer watches the server's health.
type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }
. "$ROOT/tests/server/common.bash"

mkdir clients
cp "$ROOT"/tests/long/grpc-clients/*.go clients
# Modules go to a directory of this test's own, beside the program's, and come from where this
# machine's Go gets them.
export GOPATH=$PWD/path GOFLAGS=-modcacherw GOTOOLCHAIN=local
cd clients
printf 'module clients\n\ngo 1.25\n' >go.mod
if ! timeout 400 go get github.com/apache/arrow-go/v18@v18.8.0 github.com/grafana/pyroscope/api@v1.6.0 >get.log 2>&1 ||
    ! timeout 400 go mod tidy >>get.log 2>&1; then
    tail -n 3 get.log
    echo "The clients can't be had here: they need Go 1.25 and modules that can't be downloaded."
    exit 77
fi
timeout 900 go build -o clients . || exit 1
cd ..

start_server peer --data store -c keep.yaml
./clients/clients "${url#http://}" "$FIXTURES/man/cpu.pb.gz"
get "/api/v1/profile?format=folded&query=$cpu%7Bservice_name%3D%22peer%22%7D&$always" >stacks.txt
cat stacks.txt
# The same bytes twice are the same samples.
grep -q '^peer+0x1234;a function with a name that is not short;short 500000$' stacks.txt
stop_server
