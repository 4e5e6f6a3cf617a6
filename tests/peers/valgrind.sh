#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Callgrind's and Massif's files of a real program: each function's own cost must be what
# callgrind_annotate prints, and the heap at its peak what the snapshot says.

skip() {
    echo "$1"
    exit 77
}
command -v valgrind >/dev/null || skip "There is no valgrind here to record with."
command -v cc >/dev/null || skip "There is no compiler here to build the recorded program with."
cat >load.c <<'END'
#include <stdlib.h>
static volatile unsigned long sink;
static __attribute__((noinline)) void light(int n) { for (int i = 0; i < n; i++) sink += (unsigned long)i; }
static __attribute__((noinline)) void heavy(int n) { for (int i = 0; i < n; i++) light(20); }
static __attribute__((noinline)) int recursive(int n) { sink++; return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
static __attribute__((noinline)) char *keep(size_t n) { return malloc(n); }
int main(void)
{
    heavy(300);
    light(500);
    recursive(12);
    for (int i = 0; i < 20; i++) {
        char *kept = keep(1000);
        if (i % 2)
            free(kept);
    }
    return 0;
}
END
cc -O1 -g -fno-inline -fno-ipa-cp -o load load.c
valgrind --tool=callgrind --callgrind-out-file=callgrind.out ./load >/dev/null 2>log || skip "valgrind can't run here: $(tail -1 log)"

own() { # FUNCTION: its own instructions, for assay and for callgrind_annotate
    "$ASSAY" report callgrind.out --format csv --top 0 | awk -F, -v name="$1" '$5 == name { sum += $1 } END { print sum + 0 }'
}
for name in light heavy recursive main; do
    # Sums over files and binaries; "recursive'2" is the same function called by itself.
    theirs=$(callgrind_annotate --threshold=100 --auto=no callgrind.out | tr -d , |
        awk -v name="$name" '$0 ~ ":" name "( |$)" && !found { found = $1 } END { print found + 0 }')
    [ "$(own "$name")" = "$theirs" ] || {
        echo "assay: $name has $(own "$name") instructions, callgrind_annotate says $theirs."
        exit 1
    }
done
total=$(awk '/^(totals|summary):/ { total = $2 } END { print total }' callgrind.out)
ours=$("$ASSAY" report callgrind.out --format csv --top 0 | awk -F, 'NR > 1 { sum += $1 } END { printf "%d", sum }')
[ "$ours" = "$total" ] || {
    echo "assay finds $ours instructions, the file has $total."
    exit 1
}
# light's callers have what callgrind measured on the calls.
"$ASSAY" convert callgrind.out --to folded -o - | grep 'main;heavy;light [0-9]' >/dev/null

valgrind --tool=massif --massif-out-file=massif.out ./load >/dev/null 2>&1
peak=$(awk -F= '/^mem_heap_B=/ { bytes = $2 } /^heap_tree=peak/ { print bytes; exit }' massif.out)
ours=$("$ASSAY" report massif.out --format csv --top 0 | awk -F, 'NR > 1 { sum += $1 } END { printf "%d", sum }')
[ "$ours" = "$peak" ] || {
    echo "assay finds $ours bytes at the peak, massif $peak."
    exit 1
}
"$ASSAY" convert massif.out --to folded -o - | grep 'main;keep [0-9]' >/dev/null
