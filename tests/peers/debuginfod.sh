#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server as a debuginfod server, asked by debuginfod-find and gdb; and files that they get are
# the ones that were sent.
for tool in debuginfod-find gdb cc objcopy strip readelf; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to ask with."
        exit 77
    }
done
. "$ROOT/tests/server/common.bash"
cat >prog.c <<'C'
__attribute__((noinline)) int where_it_stops(int n)
{
    return n * 3;
}
int main(int argc, char **argv)
{
    (void)argv;
    return where_it_stops(argc) == 0;
}
C
cc -O1 -g -Wl,--build-id=sha1 -o prog prog.c
objcopy --only-keep-debug prog prog.debug
strip -o prog.stripped prog
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
"$ASSAY" token create reader --file tokens -r read 2>/dev/null >reader.token
"$ASSAY" token create sender --file tokens -r ingest 2>/dev/null >sender.token
start_server server --in-memory --tokens tokens
"$ASSAY" debuginfo upload --server "$url" --token-file sender.token prog.debug prog.stripped >said.txt
[[ $(cat said.txt) == "2 sent ("* ]]

export DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_TIMEOUT=60
# Without a token there is nothing to be had; with one in the headers' file there is.
if debuginfod-find debuginfo "$id" >found.txt 2>&1; then exit 1; fi
rm -rf cache
printf 'Authorization: Bearer %s\n' "$(cat reader.token)" >headers
export DEBUGINFOD_HEADERS_FILE=$PWD/headers
cmp prog.debug "$(debuginfod-find debuginfo "$id")"
cmp prog.stripped "$(debuginfod-find executable "$id")"
objcopy -O binary --only-section=.debug_line --set-section-flags .debug_line=alloc prog.debug line.expected
cmp line.expected "$(debuginfod-find section "$id" .debug_line)"
cmp <(objcopy -O binary --only-section=.text prog /dev/stdout) "$(debuginfod-find section "$id" .text)"
for wrong in "debuginfo 00112233445566778899aabbccddeeff00112233" "section $id .no_such_section" \
    "source $id /prog.c"; do
    # shellcheck disable=SC2086 # words
    if debuginfod-find $wrong >found.txt 2>&1; then exit 1; fi
done
curl -sS -D head.txt -o /dev/null -H "$(cat headers)" "$url/buildid/$id/debuginfo"
grep -i "^x-debuginfod-size: $(stat -c %s prog.debug)" head.txt >/dev/null
grep -i '^x-debuginfod-file: prog' head.txt >/dev/null
stop_server

# gdb knows lines of a stripped program, and without a token where settings say so.
printf 'symbols: {debuginfod_open: true}\n' >open.yaml
start_server open --in-memory --tokens tokens -c open.yaml
"$ASSAY" debuginfo upload --server "$url" --token-file sender.token prog >/dev/null
unset DEBUGINFOD_HEADERS_FILE
export DEBUGINFOD_URLS=$url
rm -rf cache
gdb -nx -batch -iex 'set debuginfod enabled on' -ex 'info line where_it_stops' ./prog.stripped >gdb.txt 2>&1
grep 'Line [1-3] of "prog.c" starts at address' gdb.txt >/dev/null || { cat gdb.txt; exit 1; }
status 401 "$url/api/v1/symbols"
stop_server
echo "debuginfod-find and gdb found what was sent."
