# SPDX-License-Identifier: Apache-2.0
# Heap profiles by libassay_heap.so of a program that allocates and frees known amounts at known
# sites: sizes from 16 bytes to 1 GiB, chains of realloc, 64 threads that free each other's memory,
# threads that live a moment, and children that free what their parents allocated.
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o known "$ROOT/tests/heap/known.c"
# So many samples that the interval would grow: it stays as it is.
export ASSAY_HEAP_RATE=100000
export VALUES=80 # ten sites in five cases, with four types, in two ways
# By perf events means without BPF: by the library's ring.
for ASSAY_SAMPLER in "${samplers[@]}"; do
    export ASSAY_SAMPLER
    way=$([ "$ASSAY_SAMPLER" = bpf ] && echo BPF || echo libassay_heap)
    for case in sizes chains threads moments forks; do
        if ! "$ASSAY" record --mode heap -o heap.pb.gz -- ./known "$case" >truth 2>said; then
            cat said
            fail "$case ($way)"
            continue
        fi
        cat said
        check "$case is recorded by $way" grep -q " by $way, " said
        check "$case ($way)" python3 "$ROOT/tests/heap/compare.py" heap.pb.gz <truth
        # What is lost is counted, and here nothing is.
        check "$case loses nothing ($way)" grep -q ' 0 lost, in' said
        check "$case has whole stacks ($way)" grep -q ', 100% of stacks complete' said
    done
done

# By age: half of what is held has been there for a while.
cat >ages.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static void *volatile sink;
__attribute__((noinline)) void hold(int count)
{
    while (count--)
        sink = malloc(1 << 20);
}
int main(void)
{
    hold(100);
    sleep(2);
    hold(50);
    _exit(0);
}
END
gcc -O1 -o ages ages.c
"$ASSAY" record -q --mode heap -o ages.pb.gz -- ./ages
"$ASSAY" report -t inuse_space --by age -n 0 -f json ages.pb.gz >ages.json
check "ages" python3 -c '
import json
ages = {row["function"]: row["cum"] for row in json.load(open("ages.json"))["rows"]}
print(ages)
assert abs(sum(ages.values()) - (150 << 20)) < 30 << 20
old = sum(value for age, value in ages.items() if age != "age 0-1s")
assert old >= 80 << 20'
