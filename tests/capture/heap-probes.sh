# SPDX-License-Identifier: Apache-2.0
# Heap profiles of running processes by BPF, on the probes of libassay_heap.so: known amounts.
ASSAY_SAMPLERS=bpf . "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o known "$ROOT/tests/heap/known.c"
export VALUES=24 # six sites with four types
library=$(dirname "$ASSAY")/sdk/libassay_heap.so
for case in sizes chains threads moments; do
    rm -f go && mkfifo go
    LD_PRELOAD=$library ASSAY_HEAP_RATE=2000 ./known "$case" held <go >truth &
    subject=$!
    started+=("$subject")
    exec 5>go
    "$ASSAY" record --mode heap -p "$subject" -o heap.pb.gz 2>said &
    recorder=$!
    started+=("$recorder")
    # It waits for events, by poll(), once everything is attached and the recording has begun.
    wait_until 60 grep -q '^7 ' "/proc/$recorder/syscall" || fail "$case: nothing attached"
    echo >&5
    for _ in $(seq 600); do
        [ -s truth ] && break
        sleep 0.05
    done
    sleep 0.5 # what is on its way
    kill -INT "$recorder"
    wait "$recorder" || true
    echo >&5 || true
    exec 5>&-
    wait "$subject" || true
    cat said
    # The interval grows while realloc moves 40 GB.
    mean=$([ "$case" = chains ] && echo 16777216 || echo 524288)
    check "$case" env MEAN="$mean" python3 "$ROOT/tests/heap/compare.py" heap.pb.gz <truth
    check "$case has whole stacks" grep -qE ', (100|99[.0-9]*)% of stacks complete, 0 lost' said
done
