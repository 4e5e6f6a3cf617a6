# SPDX-License-Identifier: Apache-2.0
# Two hosts whose clocks are hours off: what both did at the same time is at the same time on the
# server, which says how far off they are.
. "$ROOT/tests/agent/common.bash"
. "$ROOT/tests/agent/hosts.bash"

# A wall clock that is off, and nothing else: faketime also changes how long others wait.
cat >clock.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(clock, now);
    const char *off = getenv("CLOCK_OFF_SECONDS");
    if (clock == CLOCK_REALTIME && off)
        now->tv_sec += atol(off);
    return r;
}
C
cc -shared -fPIC -o clock.so clock.c -ldl

make_host server 10.9.8.1
make_host early 10.9.8.2
make_host late 10.9.8.3
echo 'insecure: true' >open.yaml
program=$ASSAY

# program_on HOST [VARIABLE=VALUE...]: what is called $ASSAY from then on runs there.
program_on() {
    local host=$1
    shift
    printf '#!/bin/sh\nexec nsenter --net=/proc/%s/ns/net env %s "%s" "$@"\n' "${hosts[$host]}" "$*" \
        "$program" >"on-$host"
    chmod +x "on-$host"
    ASSAY=$PWD/on-$host
}
program_on server
: >server.log
"$ASSAY" server --listen 10.9.8.1:4040 --data store --config open.yaml 2>server.log &
servers+=("$!")
until grep 'serving on' server.log >/dev/null; do
    kill -0 "${servers[0]}" || { cat server.log >&2; exit 1; }
    sleep 0.05
done
url=http://10.9.8.1:4040
get() { on server curl -sS --fail-with-body "$url$1"; }

for host in early late; do
    offset=-7200
    [ "$host" = late ] && offset=10800
    program_on "$host" "LD_PRELOAD=$PWD/clock.so" "CLOCK_OFF_SECONDS=$offset"
    cp generous.yaml "$host.yaml"
    echo "external_labels: {host: $host}" >>"$host.yaml"
    start_agent "$host" --config "$host.yaml"
    need_host "$host"
done
began=$(date +%s)
OTEL_SERVICE_NAME="both-$$" ./busy 6
ended=$(date +%s)
sleep 1
for pid in "${agents[@]: -2}"; do
    kill -TERM "$pid"
    wait "$pid"
done

# The same seconds on both, though one says two hours before and the other three later.
for host in early late; do
    get "/api/v1/timeseries?query=cpu%7Bservice_name%3D%22both-$$%22%2Chost%3D%22$host%22%7D&from=now-10m&to=now%2B10m&step=10s" >series.json
    python3 - "$began" "$ended" <<'PYTHON'
import json, sys
began, ended = map(float, sys.argv[1:])
document = json.load(open("series.json"))
points = [(p[0], p[1]) for s in document["series"] for p in s["points"] if p[1]]
total = sum(value for _, value in points)
if not points or min(t for t, _ in points) < began - 25 or max(t for t, _ in points) > ended + 25:
    sys.exit(f"{points} is not from {began} to {ended}: {json.dumps(document)[:500]}")
PYTHON
done
get /api/v1/senders >senders.json
json senders.json 'sorted(round(s["clock_skew_seconds"] / 3600) for s in d) == [-2, 3]'
json senders.json 'all(s["corrected"] > 0 for s in d)'
