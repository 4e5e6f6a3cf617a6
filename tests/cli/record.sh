# SPDX-License-Identifier: Apache-2.0
# Recording a program with a known call chain and known shares, built without frame pointers.
# Chance: shares of a short recording are estimates.
cat >known.c <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile uint64_t sink;
#define CALL __attribute__((noinline, noclone))
CALL void burn(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i * i; }
CALL void sixty(void) { burn(60000000); sink++; }
CALL void thirty(void) { burn(30000000); sink++; }
CALL void ten(void) { burn(10000000); sink++; }
CALL void deep(int depth) { if (depth) deep(depth - 1); else ten(); sink++; }
CALL void work(void) { sixty(); thirty(); deep(200); sink++; }
int main(int argc, char **argv)
{
    if (argc > 2 && fork() == 0) { burn(100000000); _exit(0); }
    for (int i = 0; i < atoi(argv[1]); i++) work();
    while (wait(NULL) > 0) ;
    return 3;
}
END
gcc -O2 -fomit-frame-pointer -o known known.c

status=0
"$ASSAY" record -F 999 -o known.pb.gz -- ./known 12 2>said || status=$?
if grep -q perf_event_paranoid said || grep -q 'no perf events' said; then
    echo "Samples cannot be taken here: $(cat said)"
    exit 77
fi
echo "the command's exit code: $status"
grep -cE '^assay: [0-9]+ samples of 1 process by [A-Za-z ]+, [0-9.]+% of stacks complete, 0 lost, in known.pb.gz$' said

# Shares of 60, 30 and 10: six points are three standard errors of the few hundred samples.
"$ASSAY" report known.pb.gz --top 0 --format json >report.json
for expected in sixty:60 thirty:30 ten:10 deep:10 work:100 main:100; do
    jq -r --arg f "${expected%:*}" --argjson share "${expected#*:}" '
        .total as $total | ([.rows[] | select(.function == $f) | .cum] | add // 0) as $cum |
        if ($cum * 100 / $total - $share | fabs) < 6 then "\($f) has its share"
        else "\($f) has \($cum * 100 / $total)% instead of \($share)%" end' report.json
done

# Nearly every stack reaches the thread's first frame, and the recursion is there in full.
whole=$(grep -oE '[0-9.]+% of stacks' said | grep -oE '^[0-9.]+')
jq -n --argjson whole "$whole" 'if $whole >= 99 then "stacks are whole" else $whole end' -r
"$ASSAY" convert known.pb.gz -t samples -o known.folded
grep -E '(;deep){201};ten;burn' known.folded >/dev/null && echo "200 calls deep"
"$ASSAY" info --format json known.pb.gz | jq -c '[.types[].type], ([.labels[].key] | sort)'

# A child process is recorded too, by its own pid.
"$ASSAY" record -q -F 999 -o two.pb.gz -- ./known 2 child || true
"$ASSAY" info --format json two.pb.gz | jq '[.labels[] | select(.key == "pid") | .values]' -c

# A process that runs already: for a while, and until Ctrl-C.
./known 1000 &
running=$!
"$ASSAY" record -F 999 -p "$running" -d 0.5 -o pid.pb.gz 2>said
"$ASSAY" report --cum -n 0 --format csv pid.pb.gz | grep -c ',work,'
"$ASSAY" record -F 999 -p "$running" -o pid.html 2>said &
recording=$!
# A shell starts what is in the background with Ctrl-C ignored.
for _ in {1..1200}; do
    caught=$(sed -n 's/^SigCgt:[^0-9a-f]*/0x/p' "/proc/$recording/status")
    ((!(caught & 2))) || break
    sleep 0.05
done
sleep 0.5
kill -INT "$recording"
wait "$recording" && grep -o 'in pid.html' said
kill "$running"
wait "$running" || true
# Everything on the machine, where that is allowed: our own program among it.
./known 1000 &
running=$!
if [ "$(id -u)" -eq 0 ]; then
    "$ASSAY" record -q -a -F 499 -d 1 -o all.pb.gz
    "$ASSAY" report --tag comm=known --cum -n 0 --format csv all.pb.gz | grep -c ',work,'
    "$ASSAY" record -q -a -F 99 -d 0.5 -o all.svg && grep -c '<title>known&#10;' all.svg
else
    printf '1\n1\n'
fi
kill "$running"
wait "$running" || true
# A command that outlives the recording keeps its exit code.
"$ASSAY" record -q -F 99 -d 0.1 -o part.pb.gz -- ./known 4 || echo "the command's exit code: $?"

echo "== what goes wrong"
try() {
    local status=0
    "$ASSAY" record "$@" >out 2>err || status=$?
    # In a pid namespace of its own it warns that there is no BPF.
    sed '/^assay: warning: /d' err | sed -n 1p
    echo "-> $status"
}
try -o x.pb.gz -- ./not-there
try -o x.pb.gz -- /
try -o x.unknown -- ./known 1
try -F 0 -- ./known 1
try -p 999999999
try -p nobody
try -p ""
try -p 1 -- ./known 1
try -a -p 1
try
try -q -o signal.pb.gz -- sh -c 'kill -9 $$'
ls x.* 2>/dev/null || echo "nothing was written"
