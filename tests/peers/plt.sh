#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names of linkage stubs against objdump's: programs and libraries of this system, and small ones
# that are linked in every way that makes other stubs.

command -v objdump >/dev/null || {
    echo "There is no objdump here to compare with."
    exit 77
}
files=()
for file in /bin/bash /usr/bin/git /usr/bin/perl /usr/bin/openssl "$(command -v python3)" \
    "$(command -v postgres || true)" /lib/x86_64-linux-gnu/lib{c.so.6,stdc++.so.6,crypto.so.3}; do
    [ -z "$file" ] || ! objdump -f "$file" >/dev/null 2>&1 || files+=("$file")
done

if command -v cc >/dev/null; then
    cat >calls.c <<'C'
#include <math.h>
#include <stdio.h>
#include <string.h>
int (*kept)(const char *) = puts;
int main(int count, char **arguments)
{
    int (*local)(const char *) = puts;
    if (count > 1)
        return printf("%s %zu\n", arguments[1], strlen(arguments[1])) + local("") + kept("");
    return (int)pow(count, strcmp(arguments[0], "x")) + memcmp(arguments[0], "abc", 2);
}
C
    link() {
        local name=$1
        shift
        ! cc -O1 -fno-builtin -o "$name" calls.c "$@" -lm >/dev/null 2>&1 || files+=("$name")
    }
    link lazy -Wl,-z,lazy
    link now -Wl,-z,now
    link guarded -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy
    link static -static
    link static-pie -static-pie
    link fixed -no-pie -Wl,-z,lazy
    for linker in gold lld mold; do
        link "$linker" -fuse-ld=$linker
        link "$linker-lazy" -fuse-ld=$linker -Wl,-z,lazy
        link "$linker-static" -fuse-ld=$linker -static
        link "$linker-guarded" -fuse-ld=$linker -fcf-protection=full -Wl,-z,force-ibt
        link "$linker-retpoline" -fuse-ld=$linker -Wl,-z,retpolineplt
    done
fi
python3 "$ROOT/tests/peers/compare_plt.py" "$DUMP_SYMBOLS" "${files[@]}"
