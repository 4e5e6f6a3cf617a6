# SPDX-License-Identifier: Apache-2.0
# The stacks of a program with known calls, built without frame pointers: one thread waits in
# pause, one sleeps, one spins, and one waits in a signal's handler. None of them may notice.
cat >known.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>
static volatile uint64_t sink;
#define CALL __attribute__((noinline, noclone))
CALL void beta(void) { pause(); sink++; _exit(8); }
CALL void alpha(void) { beta(); sink++; }
CALL void nap(void) { struct timespec t = {1000, 0}; if (nanosleep(&t, &t)) _exit(9); sink++; }
CALL void doze(void) { nap(); sink++; }
CALL void spin(void) { for (;;) sink++; }
CALL void whirl(void) { spin(); sink++; }
CALL void handler(int number) { sink += number; pause(); sink++; _exit(10); }
CALL void interrupted(void) { raise(SIGUSR1); sink++; }
static void *sleeper(void *name) { pthread_setname_np(pthread_self(), name); doze(); return name; }
static void *spinner(void *name) { pthread_setname_np(pthread_self(), name); whirl(); return name; }
static void *handling(void *name)
{
    pthread_setname_np(pthread_self(), name);
    interrupted();
    return name;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && !strcmp(argv[1], "traced")) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        alpha();
    }
    if (argc > 1 && !strcmp(argv[1], "vfork")) {
        if (vfork() == 0) { pause(); _exit(1); }
        _exit(7);
    }
    signal(SIGUSR1, handler);
    pthread_create(&thread, NULL, sleeper, "the sleeper");
    pthread_create(&thread, NULL, spinner, "the \"spinner\"");
    pthread_create(&thread, NULL, handling, "in a handler");
    alpha();
}
END
gcc -O2 -fomit-frame-pointer -pthread -o known known.c

states() { cat "/proc/$1"/task/*/stat 2>/dev/null | sed 's/.*) \(.\).*/\1/' | tr -d '\n'; }
wait_for() { # PID STATES
    for _ in $(seq 500); do
        [ "$(states "$1")" != "$2" ] || return 0
        sleep 0.02
    done
    echo "The threads of the program are $(states "$1") instead of $2."
    return 1
}
./known &
known=$!
trap 'kill -9 $known 2>/dev/null || true' EXIT
wait_for "$known" SSRS

status=0
"$ASSAY" stacks -p "$known" -f json >stacks.json 2>said || status=$?
if [ "$status" -ne 0 ] && grep -qE 'ptrace_scope|SYS_PTRACE' said; then
    echo "Processes cannot be traced here: $(cat said)"
    exit 77
fi
show() {
    jq -r '.threads[] | "\(.name), \(.state), \(.end): in \(.frames[0].binary), " +
        ([.frames[] | select(.binary == "known") | .function] | join(" < "))' "$1"
}
show stacks.json
jq -c --argjson pid "$known" '[.pid == $pid, .threads[0].tid == $pid, .name]' stacks.json
sed -E "s/$known/PID/; s/[0-9]+ us/N us/" said

echo "== text"
"$ASSAY" stacks --pid "$known" 2>/dev/null >stacks.txt
sed -nE 's/^thread [0-9]+/thread TID/p' stacks.txt
grep -cE '^  #[0-9]+ +(alpha|beta|main|doze|nap|whirl|spin|interrupted|handler) +known$' stacks.txt

echo "== nobody has noticed"
for _ in $(seq 20); do "$ASSAY" stacks -p "$known" >/dev/null 2>&1; done
wait_for "$known" SSRS
grep -h TracerPid "/proc/$known"/task/*/status | sort -u | tr '\t' ' '

echo "== stopped by a signal, and so afterwards"
kill -STOP "$known"
wait_for "$known" TTTT
"$ASSAY" stacks -p "$known" -f json 2>/dev/null >stacks.json
show stacks.json
states "$known" && echo
kill -CONT "$known"
wait_for "$known" SSRS
kill "$known"
wait "$known" || echo "ended by us: $?"

echo "== a thread that cannot be stopped goes on afterwards"
./known vfork &
parent=$!
wait_for "$parent" D
"$ASSAY" stacks -p "$parent" 2>said | sed "s/$parent/PID/"
sed "s/$parent/PID/" said
mapfile -t -d ' ' children <"/proc/$parent/task/$parent/children"
kill -9 "${children[@]}"
wait "$parent" || echo "its own exit code: $?"

echo "== what goes wrong"
try() {
    local status=0
    "$ASSAY" stacks "$@" >out 2>err || status=$?
    head -1 err
    echo "-> $status"
}
try -p 999999999
try -p nobody
try -p 0
try -p 1,2
try -p 1 -f csv
try
try -p 1 more
./known traced &
wait_for "$!" S
try -p "$!" | sed "s/process $!/process PID/; s/process $$/process SHELL/"
kill -9 "$!"
wait "$!" || true
# Not every container sees the kernel's threads.
if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
    try -p 2
else
    echo "assay: The process 2 (kthreadd) is a kernel thread, whose stack assay" \
        "cannot read."
    echo "-> 1"
fi
