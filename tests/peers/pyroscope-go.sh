# SPDX-License-Identifier: Apache-2.0
# Pyroscope's Go SDK pushes CPU, heap, goroutine, mutex and block profiles of a real program; what is
# queried back has the program's functions, with about the CPU time that it says it has used.
# Chance: the Go runtime decides when it takes the samples that are compared.
type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }
. "$ROOT/tests/server/common.bash"
seconds=${PYROSCOPE_SECONDS:-18}

mkdir service
cp "$ROOT"/tests/peers/pyroscope/*.go service
cd service
printf 'module service\n\ngo 1.21\n' >go.mod
# Modules go to a directory of this test's own, and come from where this machine's Go gets them.
export GOPATH=$PWD/path GOFLAGS=-modcacherw GOTOOLCHAIN=local
if ! timeout 300 go get github.com/grafana/pyroscope-go@v1.2.7 >get.log 2>&1; then
    tail -n 3 get.log
    echo "Pyroscope's SDK can't be had here: no Go modules can be downloaded."
    exit 77
fi
timeout 500 go build -o service . || exit 1
cd ..

start_server peer --data store -c keep.yaml --access-log
./service/service "$url" "$seconds" >used.txt
read -r cpu_ns _ <used.txt

total() { get "/api/v1/top?query=$1%7Bservice%3D%22peer.service%22%7D&sort=cum&$always" >top.json; }
get "/api/v1/types?$always" >types.json
for type in "$cpu" memory:alloc_objects:count:space:bytes memory:alloc_space:bytes:space:bytes \
    memory:inuse_objects:count:space:bytes memory:inuse_space:bytes:space:bytes; do
    json types.json "any(t['id'] == '$type' for t in d)"
done
json types.json '{"mutex", "block", "goroutines"} <= {t["name"] for t in d}'
[ "$(get "/api/v1/label/region/values?$always")" = '["test"]' ]

total cpu
# The last upload may be short of some; what is sampled at 100 Hz is not exact.
json top.json "0.7 * $cpu_ns < d['total'] < 1.3 * $cpu_ns"
json top.json "any(f['function'] == 'main.burnHot' and f['cum'] > 0.5 * d['total'] for f in d['functions'])"
total inuse
json top.json "any(f['function'] == 'main.keepMemory' and f['cum'] >= 3 << 20 for f in d['functions'])"
total lock
json top.json "any(f['function'].startswith('main.contend') for f in d['functions']) or any('Mutex' in f['function'] for f in d['functions'])"
# Every push was taken.
grep -E '"POST [^"]*" [45]' peer.log && exit 1
get /api/v1/senders >senders.json
json senders.json 'd[0]["pushes"] >= 3 and sum(d[0]["refused"].values()) == 0'
stop_server
