# SPDX-License-Identifier: Apache-2.0
# The server's clock under load: over midnight, days ahead and back again. Nothing is lost or doubled,
# each batch is in the files of its own days, and the server answers all the while.
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null || true)
[ -n "$faketime" ] || { echo "faketime is not installed."; exit 77; }
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/disaster.bash"

# Seconds that the server's clock is ahead, and the senders' with it, by a file that both read.
set_clock() { printf '%+d\n' "$1" >clock.new && mv clock.new clock; }
until_midnight=$((86400 - $(date +%s) % 86400))
set_clock $((until_midnight - 600))
export FAKETIME_TIMESTAMP_FILE=$PWD/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
export DONT_FAKE_MONOTONIC=1 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
cat >assay-then <<SCRIPT
#!/bin/sh
LD_PRELOAD=$faketime exec "$ASSAY" "\$@"
SCRIPT
chmod +x assay-then
ASSAY=$PWD/assay-then
begin_load --data store --clock-file clock
until_midnight=$((86400 - $(date +%s) % 86400)) # the start may have taken long
set_clock $((until_midnight - 3))

# Over midnight: it is the next day for the server when its own metrics say so.
tell load
sleep 5
tell health
tell acknowledge 20
tell end
tell check
# Today, yesterday and tomorrow have files of their own.
[ "$(find store/anonymous -name 'raw-default-*.assay' | wc -l)" = 3 ]

for jump in $((3 * 86400)) $((until_midnight + 100)) $((until_midnight - 86400)) 30 0; do
    set_clock "$jump"
    tell load
    tell acknowledge 20
    tell health
    tell end
    tell check
done
tell kill
tell start
tell check
tell load
tell acknowledge 5
# While senders are at it.
for jump in 86400 -86400 7200 -7200 0; do
    set_clock "$jump"
    tell acknowledge 10
    tell health
done
tell end
tell settle
end_load
