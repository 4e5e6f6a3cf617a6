# SPDX-License-Identifier: Apache-2.0
# The OpenTelemetry eBPF profiler sends what it samples of a program by gRPC. $OTEL_EBPF_PROFILER is
# one that is built: its module can't be installed by `go install` everywhere, but its repository is
# built by `go build`, with the BPF programs that it has.
. "$ROOT/tests/server/common.bash"

profiler=${OTEL_EBPF_PROFILER:-}
[ -n "$profiler" ] || { echo "OTEL_EBPF_PROFILER names no program."; exit 77; }
[ "$(id -u)" = 0 ] || { echo "The profiler needs root."; exit 77; }

start_server ebpf --data data -c keep.yaml
cat >spin.py <<'PYTHON'
def spin_in_here():
    total = 0
    for number in range(10**12):
        total += number
spin_in_here()
PYTHON
python3 spin.py &
servers+=("$!")
# It looks for tracepoints in tracefs, which a container may not have mounted.
unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec "$@"' profiler "$profiler" \
    -collection-agent "${url#http://}" -disable-tls -samples-per-second 50 -reporter-interval 2s >profiler.log 2>&1 &
sender=$!
servers+=("$sender")
tries=0
until get "/api/v1/profile?format=folded&query=$cpu%7B%7D&$always" >stacks.txt 2>/dev/null &&
    grep -q ';<module>;spin_in_here' stacks.txt; do
    if ! kill -0 "$sender" 2>/dev/null && grep -q 'operation not permitted' profiler.log; then
        tail -n 1 profiler.log
        echo "The profiler isn't allowed to start here."
        exit 77
    fi
    if [ $((tries += 1)) -gt 300 ]; then
        tail -n 20 profiler.log stacks.txt >&2
        exit 1
    fi
    sleep 0.4
done
kill "$sender"
get /metrics >metrics.txt
grep '^assay_http_requests_total{.*ProfilesService/Export",status="200"} [1-9]' metrics.txt
if grep '^assay_http_requests_total{.*ProfilesService/Export",status="[45]' metrics.txt; then exit 1; fi
