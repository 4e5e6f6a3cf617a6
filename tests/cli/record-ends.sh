# SPDX-License-Identifier: Apache-2.0
# However a recording ends, what was recorded is written, and no process is left behind.
cat >busy.c <<'END'
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
static volatile uint64_t sink;
__attribute__((noinline)) void spin(void) { for (;;) sink += sink * sink; }
int main(int argc, char **argv)
{
    if (argc > 1) signal(SIGINT, SIG_IGN);
    FILE *file = fopen("busy.pid", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    spin();
    return argv[0] == 0;
}
END
gcc -O2 -o busy busy.c
"$ASSAY" record -q -F 99 -o probe.pb.gz -- true 2>said || { echo "Samples cannot be taken here: $(cat said)" && exit 77; }

soon() {
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    echo "not soon: $*"
    return 1
}
# By its CPU time: it has been there for a few samples.
is_busy() { [ -s busy.pid ] && [ "$(awk '{ print $14 }' "/proc/$(cat busy.pid)/stat")" -gt 10 ]; }
# A recorder that was started beside a busy process samples it: its events are open, and the process
# has run for a while since.
is_sampling() { find "/proc/$recorder/fd" -lname '*perf_event*' | grep -q .; }
cpu_ticks() { awk '{ print $14 }' "/proc/$busy/stat"; }
has_run() { [ "$(cpu_ticks)" -gt $(($1 + 30)) ]; }
gone() { ! kill -0 "$(cat busy.pid)"; }
# Its share of all samples; any is enough to know that they were written.
has_spin() { "$ASSAY" report "$1" -n 0 --format csv | grep -c ',spin,' || true; }

echo "== signals to a command's recorder"
for signal in TERM HUP "INT INT"; do
    rm -f busy.pid ended.pb.gz
    "$ASSAY" record -F 499 -o ended.pb.gz -- ./busy ignores-interrupts 2>said &
    recorder=$!
    soon is_busy
    for each in $signal; do
        kill -s "$each" "$recorder"
        sleep 0.3
    done
    status=0
    wait "$recorder" || status=$?
    soon gone
    echo "$signal: exit code $status, spin: $(has_spin ended.pb.gz)"
done

echo "== signals to the recorder of a process"
for signal in TERM HUP INT; do
    rm -f busy.pid ended.pb.gz
    ./busy &
    busy=$!
    soon is_busy
    "$ASSAY" record -F 499 -p "$busy" -o ended.pb.gz 2>said &
    recorder=$!
    soon is_sampling
    soon has_run "$(cpu_ticks)"
    kill -s "$signal" "$recorder"
    status=0
    wait "$recorder" || status=$?
    kill -0 "$busy" && echo "$signal: exit code $status, spin: $(has_spin ended.pb.gz)"
    kill "$busy"
    wait "$busy" || true
done

echo "== a process that ends before it has used CPU time"
sleep 1000 &
busy=$!
"$ASSAY" record -p "$busy" -d 600 -o idle.pb.gz 2>said &
recorder=$!
soon is_sampling
kill "$busy"
wait "$busy" || true
status=0
wait "$recorder" || status=$?
echo "exit code $status, $(grep -o 'no samples: the process ended before one was taken' said)"

echo "== a place that can't be written"
for place in nowhere/x.pb.gz /; do
    status=0
    "$ASSAY" record -o "$place" --to pprof -- touch ran 2>said || status=$?
    cat said
    [ ! -e ran ] && echo "exit code $status, and nothing was run"
done

echo "== the end of the time, however late the recorder notices"
./busy &
busy=$!
soon is_busy
for ASSAY_SAMPLER in bpf perf; do
    export ASSAY_SAMPLER
    "$ASSAY" record -q -o probe.pb.gz -- true 2>/dev/null || { echo "at most 0.7 s of samples" && continue; }
    "$ASSAY" record -F 199 -p "$busy" -d 0.5 -o timed.pb.gz 2>said &
    recorder=$!
    sleep 0.4
    kill -STOP "$recorder"
    sleep 2
    kill -CONT "$recorder"
    wait "$recorder"
    "$ASSAY" info --format json timed.pb.gz |
        jq -r 'if .duration_ns <= 500000000 then empty else "duration \(.duration_ns)" end'
    "$ASSAY" report timed.pb.gz --format json |
        jq -r 'if .total <= 700000000 then "at most 0.7 s of samples" else "\(.total) ns of samples" end'
done

echo "== a recorder that loses samples says how much of the CPU time it covers"
if ASSAY_SAMPLER=perf "$ASSAY" record -q -o probe.pb.gz -- true 2>/dev/null; then
    ASSAY_SAMPLER=perf "$ASSAY" record -F 4999 -p "$busy" -o lossy.pb.gz 2>said &
    recorder=$!
    soon is_sampling
    kill -STOP "$recorder"
    before=$(cpu_ticks)
    for _ in 1 2 3; do soon has_run "$before" && before=$((before + 30)); done
    kill -INT "$recorder"
    kill -CONT "$recorder"
    wait "$recorder"
    # A slow recorder may have lost them all.
    grep -oE '[1-9][0-9]?% of the CPU time covered, [1-9]' said | sed 's/[0-9][0-9]*/N/g' ||
        { grep -q ' 0 samples .*, [1-9][0-9]* lost' said && ! grep -q 'too little' said &&
            echo "N% of the CPU time covered, N"; } || cat said
else
    echo "N% of the CPU time covered, N"
fi
unset ASSAY_SAMPLER

echo "== names that take too long"
"$ASSAY" record -F 499 -p "$busy" -d 0.3 -o late.pb.gz --naming-timeout 0.000001 2>said
grep -o 'symbols of [0-9]* files* are missing' said | sed 's/[0-9][0-9]*/N/; s/files/file/; s/are/is/'
echo "spin: $(has_spin late.pb.gz)"
"$ASSAY" report late.pb.gz -n 0 --format csv | grep -q ',busy+0x' && echo "busy has addresses"
"$ASSAY" convert --symbolize late.pb.gz -o named.pb.gz
echo "spin: $(has_spin named.pb.gz)"
kill "$busy"
wait "$busy" || true
