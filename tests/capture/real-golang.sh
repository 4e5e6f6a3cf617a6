# SPDX-License-Identifier: Apache-2.0
# A Go HTTP server under load: goroutines, the garbage collector, the network poller.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
# Toolchains: go
. "$ROOT/tests/capture/common.bash"
need python3 go wrk

export GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0
work=$PWD
if ! (cd "$subjects/golang" && go build -trimpath -o "$work/golang" .) 2>said; then
    skip_all "Go cannot build here: $(tail -n 1 said)"
fi
port=$(free_port)
./golang "127.0.0.1:$port" >server.said 2>&1 &
server=$!
started+=("$server")
wait_until 20 answers "$port" || { cat server.said && exit 1; }
load() { wrk -t 1 -c 16 -d "$1" "http://127.0.0.1:$port/"; }
# Perf events copy the thread's stack, which ends where the runtime came from a goroutine's. How much
# of the time that is, is the garbage collector's choice.
every_sampler=("${samplers[@]}")
for sampler in "${every_sampler[@]}"; do
    samplers=("$sampler")
    switched=()
    [ "$sampler" = bpf ] || switched=(--switched 'runtime\..*|time\.now')
    real "a Go server" "$server" --whole 95 --named 95 "${switched[@]}"
done
