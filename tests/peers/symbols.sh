#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our symbol tables against readelf's lists and c++filt's names: libraries and programs of this
# system, and a program of our own whose symbols are in a separate file, or gone.

for tool in readelf c++filt objcopy strip; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to compare with."
        exit 77
    }
done
compare() { python3 "$ROOT/tests/peers/compare_symbols.py" "$DUMP_SYMBOLS" "$@"; }

for file in /lib/x86_64-linux-gnu/{libc.so.6,libstdc++.so.6,libm.so.6} "$ASSAY" "$DUMP_SYMBOLS"; do
    [ ! -e "$file" ] || compare "$file"
done

command -v cc >/dev/null || exit 0
cat >small.c <<'C'
#include <stdio.h>
__attribute__((noinline)) static int inner(int n) { return printf("%d\n", n) * 3; }
__attribute__((noinline)) int outer(int n) { return inner(n + 1) + 1; }
int main(int count, char **arguments) { (void)arguments; return outer(count) == 0; }
C
for identity in none sha1; do
    cc -O2 -fno-ipa-icf -Wl,--build-id=$identity -o whole small.c
    objcopy --only-keep-debug whole small.debug
    strip -o small whole
    objcopy --add-gnu-debuglink=small.debug small
    compare small whole
    mkdir .debug
    mv small.debug .debug/
    compare small whole
    # Another program's symbols are worse than none.
    cc -O1 -o other small.c
    objcopy --only-keep-debug other .debug/small.debug
    start=$(nm whole | awk '$3 == "outer" { print $1 }')
    [ "$(echo "$start" | "$DUMP_SYMBOLS" small)" = "$(printf '%x\t\t' "0x$start")" ]
    rm -r .debug
done

# Without any symbols: unwind entries. _init and _fini have none.
objcopy -w -N _init -N _fini -N _start whole sized
compare --unnamed small sized
