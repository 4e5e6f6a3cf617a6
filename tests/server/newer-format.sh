# SPDX-License-Identifier: Apache-2.0
# A server refuses a store of a format that it doesn't read: it names the file and both formats, ends
# with 1, and changes nothing.
. "$ROOT/tests/server/common.bash"

start_server data --data data
printf 'main;work 7\n' >one.folded
push one.folded 'service=a&from=now-10s' >/dev/null
stop_server

raw=$(ls data/anonymous/raw-*.assay)
printf '\x00\x00\x00\x63' | dd of="$raw" bs=1 seek=60 conv=notrunc status=none # user_version
cp -r data before
status=0
timeout 60 "$ASSAY" server --listen 127.0.0.1:0 --data data 2>refused.txt || status=$?
[ "$status" = 1 ] || { echo "The server ended with $status:"; cat refused.txt; exit 1; }
grep "$(basename "$raw") has format 99; this program reads format" refused.txt >/dev/null ||
    { cat refused.txt; exit 1; }
grep 'use `assay store export` of the version that wrote it' refused.txt >/dev/null || { cat refused.txt; exit 1; }
cmp "$raw" "before/${raw#data/}"
