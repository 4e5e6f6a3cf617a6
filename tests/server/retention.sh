# SPDX-License-Identifier: Apache-2.0
# A server whose clock jumps far ahead removes nothing, and says so; when an admin says that the
# clock is right, what is too old goes, and the log names it.
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null || true)
[ -n "$faketime" ] || { echo "faketime is not installed."; exit 77; }
. "$ROOT/tests/server/common.bash"

real=$ASSAY
set_clock() { printf '%+d\n' "$1" >clock.new && mv clock.new clock; }
set_clock 0
export FAKETIME_TIMESTAMP_FILE=$PWD/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
export DONT_FAKE_MONOTONIC=1 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
cat >assay-then <<SCRIPT
#!/bin/sh
LD_PRELOAD=$faketime exec "$real" "\$@"
SCRIPT
chmod +x assay-then
ASSAY=$PWD/assay-then
printf 'retention: {raw: 2d, ten_minutes: 3d, hour: 4d, day: 5d}\nretention_clock_limit: 36h\n' >short.yaml
printf 'main 1\n' >one.folded

# waits EXPRESSION: over what health says, as `d`.
waits() {
    for _ in $(seq 600); do
        get /api/v1/health >health.json
        if json health.json "$1" 2>/dev/null; then return; fi
        sleep 0.1
    done
    cat health.json >&2
    return 1
}
stopped='any("Retention is stopped" in p for p in d["problems"])'
raw_files() { find store/anonymous -name 'raw-*.assay' | wc -l; }

start_server clock --data store -c short.yaml
push one.folded 'service=a&from=now-10s' >/dev/null
for _ in $(seq 600); do [ ! -s store/retention ] || break; sleep 0.1; done
set_clock $((400 * 86400))
waits "d['status'] == 'degraded' and $stopped"
[ "$(raw_files)" = 1 ]
[ "$(get /metrics | grep -c '^assay_store_retention_stopped 1$')" = 1 ]
# It is right again by itself, when the clock is.
set_clock 60
waits "d['status'] == 'ok'"
stop_server

# The clock jumps while nobody is there.
set_clock $((400 * 86400))
start_server clock --data store -c short.yaml
waits "$stopped"
grep 'Retention is stopped' clock.log >/dev/null
[ "$(raw_files)" = 1 ]
status 400 -X POST "$url/api/v1/admin/retention/resume"
"$real" store retention resume --url "$url" --reason 'back after a year'
waits "not $stopped and d['store']['samples'] == 0"
[ "$(raw_files)" = 0 ]
grep 'Retention deleted store/anonymous/raw-default-' clock.log >/dev/null
stop_server
"$real" store audit store | grep '"retention resume".*back after a year' >/dev/null

# Without a server.
set_clock $((900 * 86400))
"$ASSAY" store retention resume store
"$real" store audit store | grep -c '"retention resume"' | grep '^2$' >/dev/null
