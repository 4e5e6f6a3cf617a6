#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Symbols that are packed into .gnu_debugdata, made with objcopy and xz as distributions make them:
# all functions of the program that was stripped must be found by the names that readelf lists.

for tool in cc readelf c++filt objcopy strip nm xz; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to make a file with."
        exit 77
    }
done
cat >program.c <<'C'
#include <stdio.h>
__attribute__((noinline)) static int inner(int n) { return printf("%d\n", n) * 3; }
__attribute__((noinline)) int outer(int n) { return inner(n + 1) + 1; }
int main(int count, char **arguments) { (void)arguments; return outer(count) == 0; }
C
cc -O2 -g -fno-ipa-icf -rdynamic -o whole program.c

pack() { # WHOLE PACKED XZ-OPTION...
    nm -D "$1" --format=posix --defined-only | awk '{ print $1 }' | sort >exported
    nm "$1" --format=posix --defined-only | awk '$2 ~ /[tTwWi]/ { print $1 }' | sort >functions
    comm -13 exported functions >hidden
    objcopy --only-keep-debug "$1" only.debug
    objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=hidden \
        only.debug mini
    xz -kf "${@:3}" mini
    strip -o "$2" "$1"
    objcopy --add-section .gnu_debugdata=mini.xz "$2"
}
compare() { python3 "$ROOT/tests/peers/compare_symbols.py" "$DUMP_SYMBOLS" "$@"; }

pack whole packed -6
[ "$(nm whole | awk '$3 == "inner" { print $1 }' | "$DUMP_SYMBOLS" packed | cut -f 2)" = inner ]
compare packed whole
pack whole packed -9e
compare packed whole
pack "$DUMP_SYMBOLS" packed -1
compare packed "$DUMP_SYMBOLS"

# Cut short, it is as if it were not there.
head -c 200 mini.xz >cut.xz
objcopy --update-section .gnu_debugdata=cut.xz packed
start=$(nm "$DUMP_SYMBOLS" | awk '$3 == "main" { print $1 }')
[ "$(echo "$start" | "$DUMP_SYMBOLS" packed | cut -f 2)" = "" ]
