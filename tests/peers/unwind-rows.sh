#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our unwind rows against readelf's own interpretation of the same call frame information: every row
# of every function, in programs and libraries of this system and in some built for their oddities.

command -v readelf >/dev/null || {
    echo "There is no readelf here to compare with."
    exit 77
}

files=()
add() {
    local file
    for file in "$@"; do
        file=$(readlink -f "$file") || continue
        # Another machine's, a script, or a program without call frame information (Go).
        [[ " ${files[*]} " != *" $file "* ]] || continue
        if [[ $(readelf -SW "$file" 2>/dev/null) =~ \ \.(eh|debug)_frame\  ]]; then
            files+=("$file")
        fi
    done
}

for library in libc.so.6 libm.so.6 libgcc_s.so.1; do
    add /lib/x86_64-linux-gnu/$library
done
add /lib64/ld-linux-x86-64.so.2 "$(command -v bash)"
# Reading what readelf says of a large program takes minutes.
if [ -n "${ALL_FILES:-}" ]; then
    add /lib/x86_64-linux-gnu/{libstdc++.so.6,libcrypto.so.3}
    for program in python3 postgres gdb; do
        path=$(command -v "$program") && add "$path"
    done
    python=$(python3 -c 'import sys; print(sys.executable)') && add "$python"
    mapfile -t libraries < <(ldd "$python" | grep -o '/[^ ]*libpython[^ ]*' || true)
    add "${libraries[@]}" /usr/lib/postgresql/*/bin/postgres
fi

# The vDSO is a file that only memory has.
python3 - <<'PYTHON'
import re
for line in open("/proc/self/maps"):
    if line.rstrip().endswith("[vdso]"):
        start, end = (int(text, 16) for text in re.match(r"(\w+)-(\w+)", line).groups())
        with open("/proc/self/mem", "rb") as memory, open("vdso.so", "wb") as out:
            memory.seek(start)
            out.write(memory.read(end - start))
PYTHON
add vdso.so

if command -v cc >/dev/null; then
    cat >odd.c <<'C'
#include <stdlib.h>
#include <string.h>
/* Realigns its stack, around one whose size is not known: gcc finds the frame by an expression. */
__attribute__((noinline)) int aligned(int n, char *out)
{
    char room[64] __attribute__((aligned(64)));
    char *more = __builtin_alloca((size_t)n);
    memset(room, n, sizeof(room));
    memcpy(more, room, (size_t)n);
    return out[0] + more[n / 2] + atoi(room);
}
int main(int count, char **arguments)
{
    return aligned(count + 3, arguments[0]);
}
C
    cc -O2 -o odd-pie odd.c
    cc -O2 -no-pie -o odd-fixed odd.c
    cc -O2 -static -o odd-static odd.c
    cc -O2 -static-pie -o odd-static-pie odd.c
    cc -O0 -g -fno-asynchronous-unwind-tables -fno-exceptions -o odd-debug-frame odd.c
    cc -O2 -fcf-protection -Wl,-z,ibtplt -o odd-endbr odd.c
    cc -O2 -mno-red-zone -mpreferred-stack-boundary=4 -fno-omit-frame-pointer -o odd-frames odd.c
    add odd-*
fi

python3 "$ROOT/tests/peers/compare_rows.py" "$DUMP_ROWS" readelf "${files[@]}"
