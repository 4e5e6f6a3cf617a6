# SPDX-License-Identifier: Apache-2.0
# What doctor says agrees with itself and with what is true: as we are, as a user without privilege,
# and where a filter of system calls forbids one means after the other, as containers do.
cat >forbid.c <<'END_OF_C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static const struct { const char *name; unsigned number; } calls[] = {
    {"bpf", SYS_bpf}, {"perf", SYS_perf_event_open}, {"ptrace", SYS_ptrace}};
int main(int argc, char **argv)
{
    struct sock_filter filter[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short count = 1;
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--"); at++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(argv[at], calls[i].name)) {
                filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                               calls[i].number, 0, 1);
                filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                               SECCOMP_RET_ERRNO | 1);
            }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
        return 99;
    execvp(argv[at + 1], argv + at + 1);
    return 98;
}
END_OF_C
gcc -o forbid forbid.c
cat >known.c <<'END_OF_C'
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) void burn(uint64_t n) { while (n--) sink += n * n; }
int main(void) { burn(1000000000); sink++; return 5; }
END_OF_C
gcc -O2 -o known known.c
# A leak checker traces its own process, which is what is forbidden here.
export ASAN_OPTIONS=detect_leaks=0

doctor() { # OUTPUT COMMAND...
    local status=0 output=$1
    shift
    "$@" doctor -f json >"$output" || status=$?
    jq -r --argjson status "$status" '
        if (.commands[0].works) == ($status == 0) then "the exit code agrees"
        else "the exit code is \($status)" end' "$output"
}
state() { jq -r --arg name "$2" '.checks[] | select(.name == $name) | .state' "$1"; }
works() { jq -r --arg command "$2" '.commands[] | select(.command == $command) | .works' "$1"; }
means() { jq -r '.commands[0].means' "$1"; }

echo "== as we are"
doctor own.json "$ASSAY"
"$ASSAY" doctor >own.txt || true
sed -nE 's/^(assay [a-z]+( [^ ]+)+)  +(yes|no)( .*)?$/\1/p' own.txt
diff <(sed -nE 's/^(ok|limited|no) +([a-z-]+) .*/\2 \1/p' own.txt) \
    <(jq -r '.checks[] | "\(.name) \(.state)"' own.json) && echo "text and JSON agree"
awk 'length > 80 { print "too wide: " $0 }' own.txt
grep -c $'\033' own.txt || true
jq -r '.checks[] | select(.state == "ok" and .fix != "" or .meaning == "" or .found == "") | .name' \
    own.json
jq -r '[.checks[].name] | length > 15, length == (unique | length)' own.json
[ "$(state own.json kernel)" = ok ]
[[ $(jq -r '.checks[] | select(.name == "kernel") | .found' own.json) == "$(uname -r) on x86_64" ]]

# Recordings agree with what it says of waits; without the hook behind context switches it is limited.
waits=$(state own.json wall-time)
if [ "$waits" != no ]; then
    "$ASSAY" record -q -m wall -d 0.2 -o waits.pb.gz -- sleep 0.1
    ASSAY_BPF_WITHOUT=sched_exit_tp "$ASSAY" doctor -f json >early.json || true
    [ "$(state early.json wall-time)" = limited ]
else
    jq -e '.checks[] | select(.name == "wall-time") | .found != ""' own.json >/dev/null
fi

echo "== without privilege"
if [ "$(id -u)" -eq 0 ]; then
    # By its descriptor: the path to it may be for root only.
    exec 9<"$ASSAY"
    doctor nobody.json setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
        --inh-caps=-all /proc/self/fd/9
else
    cp own.json nobody.json
    echo "the exit code agrees"
fi
state nobody.json user
level=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$level" -le 0 ]; then echo "false"; else works nobody.json "record -a"; fi
# Debian's and Ubuntu's kernels know levels above 2, which forbid all.
if [ "$level" -le 2 ] && [ "$(state nobody.json perf-events)" = no ] ||
    [ "$level" -gt 2 ] && [ "$(state nobody.json perf-events)" = ok ]; then
    # A filter may be there already.
    grep -E '^Seccomp:.*[12]' /proc/self/status || echo "perf events don't agree with level $level"
fi
jq -r '.checks[] | select(.name == "user") | .fix' nobody.json

echo "== forbidden: BPF"
status=0
./forbid -- true || status=$?
if [ "$status" -eq 99 ]; then
    echo "This kernel has no filters of system calls."
    exit 77
fi
doctor bpf.json ./forbid bpf -- "$ASSAY"
state bpf.json bpf
state bpf.json bpf-sampler
if [ "$(state own.json perf-events)" = ok ]; then
    [[ $(means bpf.json) == "by perf events"* ]]
    ./forbid bpf -- "$ASSAY" record -q -o bpf.pb.gz -- ./known 2>/dev/null || echo "its exit code: $?"
else
    echo "its exit code: 5"
fi

echo "== forbidden: BPF and perf events"
doctor perf.json ./forbid bpf perf -- "$ASSAY"
state perf.json perf-events
works perf.json "record -p PID"
if [ "$(state own.json ptrace)" = no ]; then
    echo "Nothing can be traced here: $(jq -r '.checks[] | select(.name == "ptrace") | .found' own.json)"
    exit 77
fi
means perf.json
status=0
./forbid bpf perf -- "$ASSAY" record -o perf.pb.gz -- ./known 2>said || status=$?
echo "its exit code: $status"
"$ASSAY" report -n 0 --format json perf.pb.gz | jq -r '
    .total as $total | ([.rows[] | select(.function == "burn") | .flat // .self] | add) as $burn |
    if $burn > 0.9 * $total then "burn has its share" else "burn has \($burn) of \($total)" end'

echo "== forbidden: everything"
doctor none.json ./forbid bpf perf ptrace -- "$ASSAY"
jq -r '.commands[].works' none.json | sort -u
for name in bpf perf-events ptrace; do state none.json "$name"; done
./forbid bpf perf ptrace -- "$ASSAY" doctor >none.txt || echo "-> $?"
awk 'length > 80 { print "too wide: " $0 }' none.txt

echo "== runtimes of processes"
mkfifo hold
python3 -c 'import sys; print(sys.version.split()[0], flush=True); sys.stdin.read()' <hold >version &
exec 8>hold
for _ in $(seq 400); do
    [ ! -s version ] || break
    sleep 0.05
done
"$ASSAY" doctor -f json >running.json || true
jq -r --rawfile version version '.runtimes[] | select(.name == "python" and .version == ($version | rtrimstr("\n"))) |
    (.processes > 0 and .state != "no" and .meaning != "" and (.binary | startswith("/")))' running.json | sort -u
jq -r '.processes >= ([.runtimes[].processes] | add)' running.json
"$ASSAY" doctor >running.txt || true
grep -c "python $(cat version) .* such as " running.txt | sed 's/[1-9].*/listed/'
awk 'length > 80 { print "too wide: " $0 }' running.txt
exec 8>&-
wait

echo "== what goes wrong"
try() {
    local status=0
    "$ASSAY" doctor "$@" >out 2>err || status=$?
    sed -n 1p err
    echo "-> $status"
}
try -f csv
try more
