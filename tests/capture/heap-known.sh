# SPDX-License-Identifier: Apache-2.0
# Heap profiles by libassay_heap.so of a program that allocates and frees known amounts at known
# sites: sizes from 16 bytes to 1 GiB, chains of realloc, 64 threads that free each other's memory,
# threads that live a moment, and children that free what their parents allocated.
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o known "$ROOT/tests/heap/known.c"
# So many samples that the interval would grow: it stays as it is.
export ASSAY_HEAP_RATE=100000
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
