# SPDX-License-Identifier: Apache-2.0
# Clients of others: Pyroscope's own, which pushes and queries by Connect, gRPC and gRPC-Web and gets
# the same each time; Arrow's writer in Go with the schema of Parca's agent; gRPC's own client in Go,
# whose balancer watches the server's health; grpcurl, which knows the services by reflection alone.
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
mkdir grpcurl
cd grpcurl
printf 'module grpcurl\n\ngo 1.24\n' >go.mod
if timeout 400 go get github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4 >get.log 2>&1; then
    timeout 900 go build -o grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl || exit 1
else
    tail -n 1 get.log
fi
cd ..

start_server peer --data store -c keep.yaml
./clients/clients "${url#http://}" "$FIXTURES/man/cpu.pb.gz"
get "/api/v1/profile?format=folded&query=$cpu%7Bservice_name%3D%22peer%22%7D&$always" >stacks.txt
cat stacks.txt
# The same bytes twice are the same samples.
grep -q '^peer+0x1234;a function with a name that is not short;short 500000$' stacks.txt

if [ ! -x grpcurl/grpcurl ]; then
    echo "grpcurl can't be had here: its modules can't be downloaded."
    exit 77
fi
ask() { ./grpcurl/grpcurl -plaintext "$@"; }
address=${url#http://}
ask "$address" list >services.txt
for service in grpc.health.v1.Health opentelemetry.proto.collector.profiles.v1development.ProfilesService \
    parca.debuginfo.v1alpha1.DebuginfoService parca.profilestore.v1alpha1.ProfileStoreService \
    push.v1.PusherService querier.v1.QuerierService; do
    grep -qx "$service" services.txt
    ask "$address" describe "$service" | grep -q "^service $(sed 's/.*\.//' <<<"$service") {"
done
[ "$(ask "$address" grpc.health.v1.Health/Check | tr -d ' \n')" = '{"status":"SERVING"}' ]
day='"start": 0, "end": 4102444800000'
ask -d "{$day}" "$address" querier.v1.QuerierService/LabelNames | grep -q '"service_name"'
printf '{"series": [{"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "curled"}],
    "samples": [{"rawProfile": "%s"}]}]}' "$(base64 -w 0 "$FIXTURES/man/cpu.pb.gz")" |
    ask -d @ "$address" push.v1.PusherService/Push
ask -d "{$day, \"name\": \"service_name\"}" "$address" querier.v1.QuerierService/LabelValues | grep -q '"curled"'
if ask -d '{"profileTypeID": "nonsense"}' "$address" querier.v1.QuerierService/SelectMergeProfile 2>error.txt; then exit 1; fi
grep -q 'Code: NotFound' error.txt
if ask -d '{"build_id": "nonsense"}' "$address" parca.debuginfo.v1alpha1.DebuginfoService/MarkUploadFinished 2>error.txt; then exit 1; fi
grep -q 'Message: No symbols of the build' error.txt
stop_server
