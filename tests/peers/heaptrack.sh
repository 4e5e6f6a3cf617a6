#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real recording of heaptrack: totals as heaptrack_print gives them, and its folded stacks.

skip() {
    echo "$1"
    exit 77
}
command -v heaptrack >/dev/null || skip "There is no heaptrack here to record with."
command -v heaptrack_print >/dev/null || skip "There is no heaptrack_print here to compare with."
command -v cc >/dev/null || skip "There is no compiler here to build the recorded program with."
cat >load.c <<'END'
#include <stdlib.h>
static __attribute__((noinline)) char *small(void) { return malloc(100); }
static __attribute__((noinline)) char *large(void) { return malloc(100000); }
static __attribute__((noinline)) void work(int n)
{
    for (int i = 0; i < n; i++) {
        char *kept = i % 10 ? small() : large();
        if (i % 3)
            free(kept);
    }
}
int main(void)
{
    work(300);
    work(100);
    return 0;
}
END
cc -O1 -g -o load load.c
heaptrack -o recorded ./load >log 2>&1 || skip "heaptrack can't run here: $(tail -1 log)"
file=$(ls recorded.*)
heaptrack_print "$file" -F folded.txt >printed.txt 2>/dev/null

total() { "$ASSAY" report "$file" --sample-type "$1" --format csv --top 0 | awk -F, 'NR > 1 { sum += $1 } END { printf "%d", sum }'; }
calls=$(awk -F': ' '/^calls to allocation functions/ { print $2 + 0 }' printed.txt)
[ "$(total alloc_objects)" = "$calls" ] || {
    echo "assay finds $(total alloc_objects) allocations, heaptrack $calls."
    exit 1
}
# It prints 607.50K for 607,500 bytes.
for pair in "peak_space:peak heap memory consumption" "inuse_space:total memory leaked"; do
    printed=$(awk -F': ' -v key="${pair#*:}" '$1 == key { print $2 }' printed.txt)
    ours=$(total "${pair%%:*}" | awk '{ if ($1 >= 1e6) printf "%.2fM", $1 / 1e6; else if ($1 >= 1000) printf "%.2fK", $1 / 1000; else printf "%dB", $1 }')
    [ "$ours" = "$printed" ] || {
        echo "assay: ${pair%%:*} is $ours, heaptrack says $printed."
        exit 1
    }
done
# The stacks of main, by number of allocations.
sort_stacks() { awk 'sub(/^.*main/, "main") { n = $NF; sub(/ [0-9]+$/, ""); gsub(/ \([^)]*\)/, ""); sub(/;$/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' "$1" | sort; }
"$ASSAY" convert "$file" --sample-type alloc_objects --to folded -o ours.folded
sort_stacks folded.txt >theirs
sort_stacks ours.folded >ours
[ ! -s theirs ] || diff -u theirs ours
