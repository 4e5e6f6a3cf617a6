# SPDX-License-Identifier: Apache-2.0
# Stacks of bpftrace: its own count of all samples, and its own counts by function in a second map.
command -v bpftrace >/dev/null || { echo "There is no bpftrace here." && exit 77; }
cat >busy.c <<'END'
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) void small(void) { for (int i = 0; i < 1000; i++) sink += sink * 3; }
__attribute__((noinline)) void large(void) { for (int i = 0; i < 3000; i++) sink += sink * 5; }
int main(void) { for (;;) { small(); large(); } }
END
gcc -O1 -no-pie -fno-omit-frame-pointer -o busy busy.c
./busy &
busy=$!
trap 'kill "$busy"' EXIT
# The end is a number of samples, so that a busy machine only takes longer.
timeout 60 bpftrace -e "profile:hz:199 /pid == $busy/ {
    @[ustack, comm] = count(); @by[ustack(1), comm] = count(); @total[comm] = count(); @n++;
    if (@n >= 200) { exit(); } }" >own.txt 2>said ||
    { echo "bpftrace can't sample here: $(tail -n 1 said)" && exit 77; }
total=$(sed -n 's/^@total\[busy\]: //p' own.txt)
[ "${total:-0}" -ge 200 ] || { cat said own.txt && exit 1; }
report() { "$ASSAY" report -n 0 --format json -t "$1" own.txt; }
report samples | jq -e --argjson total "$total" '.total == $total'
# The first frame alone, by bpftrace, and our own values of whole stacks.
awk '/^@by\[/ { on = 1; next } on && /^ / { name = $1; sub(/\+.*/, "", name) }
    on && /\]: / { sum[name] += $NF; on = 0 }
    END { for (name in sum) print name, sum[name] }' own.txt | sort >expected
report samples | jq -r '.rows[] | select(.flat > 0) | "\(.function) \(.flat)"' | sort >got
cat got
diff expected got
grep -q '^large ' got
