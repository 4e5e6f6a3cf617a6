#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Source files that were sent with a build, given back to debuginfod-find and to gdb, which lists a
# function whose source isn't on this machine any more.
for tool in debuginfod-find gdb cc strip readelf; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to ask with."
        exit 77
    }
done
. "$ROOT/tests/server/common.bash"
mkdir -p 'build/src/with blank%2F' build/include build/obj
cat >build/include/twice.h <<'C'
static inline __attribute__((always_inline)) int twice(volatile int *n)
{
    return *n + *n; /* the line of the header */
}
C
cat >'build/src/with blank%2F/prog.c' <<'C'
#include "../../include/twice.h"
__attribute__((noinline)) int where_it_stops(volatile int *n)
{
    return twice(n) * 3; /* the line of the source */
}
int main(int argc, char **argv)
{
    volatile int n = argc;
    (void)argv;
    return where_it_stops(&n) == 0;
}
C
(cd build/obj && cc -O1 -g -Wl,--build-id=sha1 -o ../../prog '../src/with blank%2F/prog.c')
strip -o prog.stripped prog
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
"$ASSAY" token create reader --file tokens -r read 2>/dev/null >reader.token
"$ASSAY" token create sender --file tokens -r ingest 2>/dev/null >sender.token
"$ASSAY" token create stranger --file tokens --tenant other -r read 2>/dev/null >stranger.token
start_server server --in-memory --tokens tokens
"$ASSAY" debuginfo upload --sources --server "$url" --token-file sender.token prog >said.txt
[[ $(cat said.txt) == "1 sent ("*"Sources: 2 sent, 2 found locally, 0 not found"* ]]
# Under other names: gdb looks for sources in the current directory, too.
cp 'build/src/with blank%2F/prog.c' expected.source
cp build/include/twice.h expected.header
here=$PWD
mv build hidden

export DEBUGINFOD_URLS=$url DEBUGINFOD_TIMEOUT=60
find_source() { # TOKEN PATH: the file, through a cache of its own
    printf 'Authorization: Bearer %s\n' "$(cat "$1.token")" >headers
    rm -rf cache
    DEBUGINFOD_HEADERS_FILE=$PWD/headers DEBUGINFOD_CACHE_PATH=$PWD/cache \
        debuginfod-find source "$id" "$2" 2>find.txt
}
cmp expected.source "$(find_source reader "$here/build/src/with blank%2F/prog.c")"
# As gdb asks: the directory in which the compiler ran, and what it was told.
cmp expected.source "$(find_source reader "$here/build/obj/../src/with blank%2F/prog.c")"
cmp expected.header "$(find_source reader "$here/build/obj/./../src//with blank%2F/../../include/twice.h")"
for path in /etc/passwd "$here/prog.c" "$here/build/src/../../../../../../../../etc/passwd" \
    "$here/build/src" /; do
    if find_source reader "$path"; then exit 1; fi
done
if find_source stranger "$here/build/src/with blank%2F/prog.c"; then exit 1; fi

gdb_list() {
    rm -rf cache
    DEBUGINFOD_CACHE_PATH=$PWD/cache gdb -nx -batch -iex 'set debuginfod enabled on' \
        -ex 'list where_it_stops' -ex 'list main' ./prog.stripped >gdb.txt 2>&1 || true
}
printf 'Authorization: Bearer %s\n' "$(cat reader.token)" >headers
DEBUGINFOD_HEADERS_FILE=$PWD/headers gdb_list
for line in 'the line of the header' 'return where_it_stops(&n) == 0'; do
    grep "$line" gdb.txt >/dev/null || { cat gdb.txt; exit 1; }
done
stop_server

# Where names are given to everybody, sources still are not: nobody has no tenant.
printf 'symbols: {debuginfod_open: true}\n' >open.yaml
start_server open --in-memory --tokens tokens -c open.yaml
export DEBUGINFOD_URLS=$url
mv hidden build
"$ASSAY" debuginfo upload --sources --server "$url" --token-file sender.token prog >/dev/null
mv build hidden
gdb_list
grep 'Downloading source file' gdb.txt >/dev/null || { cat gdb.txt; exit 1; }
if grep 'return where_it_stops' gdb.txt >/dev/null; then exit 1; fi
stop_server
echo "debuginfod-find and gdb found the sources that were sent."
