# SPDX-License-Identifier: Apache-2.0
# Heap profiles of running processes by BPF, on the probes of libassay_heap.so: known amounts, and a
# process without probes.
ASSAY_SAMPLERS=bpf . "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o known "$ROOT/tests/heap/known.c"
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
    # The library's semaphore is not 0 once somebody is attached: the kernel lists the recorder's
    # probe events until then in vain.
    for _ in $(seq 200); do
        ls -l /proc/"$recorder"/fd 2>/dev/null | grep -c bpf_link >links || true
        ls -l /proc/"$recorder"/fd 2>/dev/null | grep -c 'perf_event' >events || true
        [ "$(cat links)" -ge 2 ] || [ "$(cat events)" -ge 2 ] && break
        sleep 0.05
    done
    sleep 0.5
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

sleep 60 &
started+=($!)
check "a process without probes" \
    test "$("$ASSAY" record --mode heap -p $! -o none.pb.gz 2>&1 | grep -c 'has no otel_memory probes')" = 1
