# SPDX-License-Identifier: Apache-2.0
# A recorder that is short of CPU time: beside 40 busy processes, with 5% of one CPU, and at the lowest
# priority. Processes that were there before are known from their first sample, and code that is in a
# file is never taken for a JIT's.
# Chance: which of 40 busy processes get the CPU while the recorder is starved is the scheduler's
# choice.
. "$ROOT/tests/capture/common.bash"
need gcc python3 nice
# Whatever priority the tests were started with.
[ "$(id -u)" -ne 0 ] || renice -n 0 -p $$ >/dev/null

cat >busy.c <<'END'
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) void spin(void) { for (;;) sink += sink * sink; }
__attribute__((noinline)) void work(void) { spin(); sink++; }
int main(void) { work(); return 0; }
END
# Others may call theirs the same.
busy=starve-$$
gcc -O2 -fomit-frame-pointer -o "$busy" busy.c

# start COUNT: starts so many; `pids` has them.
start() {
    local each
    pids=
    for each in $(seq "$1"); do
        "./$busy" &
        started+=("$!")
        pids=$pids,$!
    done
    pids=${pids#,}
}
stop() {
    local pid
    for pid in ${pids//,/ }; do kill -9 "$pid" && wait "$pid" || true; done 2>/dev/null
    started=()
}

# A cgroup with 5% of one CPU, where one can be made: cgroup 2's, or cgroup 1's.
quota=
make_quota() {
    local folder=/sys/fs/cgroup
    if [ -e $folder/cpu/cpu.cfs_quota_us ]; then
        quota=$folder/cpu/assay-starved-$$
        mkdir "$quota" 2>/dev/null && echo 5000 >"$quota/cpu.cfs_quota_us" || quota=
    elif grep -qw cpu $folder/cgroup.subtree_control 2>/dev/null; then
        quota=$folder/assay-starved-$$
        mkdir "$quota" 2>/dev/null && echo "5000 100000" >"$quota/cpu.max" || quota=
    fi
} 2>/dev/null
leave_quota() { [ -z "$quota" ] || rmdir "$quota" || true; }
trap 'ended=$?; leave_quota; finish "$ended"' EXIT

# try NAME OPTION... -- COMMAND...: records; judge_all checks what was recorded with the options.
try() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    "$@" -o "starved$((++tries)).pb.gz" 2>said || { cat said && fail "$name" && return 0; }
    sed 's/^/# /' said
    judge+=("$name ($ASSAY_SAMPLER)|starved$tries.pb.gz|$program|${options[*]}")
}
# Names are given afterwards: beside busy processes that takes most of the time.
tries=0
judge=()
judge_all() {
    local each name path program options
    for each in "${judge[@]}"; do
        IFS='|' read -r name path program options <<<"$each"
        "$ASSAY" convert --symbolize "$path" -o named.pb.gz 2>said || { cat said && fail "$name" && continue; }
        # shellcheck disable=SC2086 # words
        check "$name" python3 "$capture/starved.py" named.pb.gz "$program" spin $options
    done
    judge=()
}
# shellcheck disable=SC2016 # the inner shell's
in_quota() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$quota" "$@"; }

make_quota
program=$busy
start 40
for ASSAY_SAMPLER in "${samplers[@]}"; do
    good=(--complete 99 --points 2 --least 10)
    # Each has little time here, and by perf events each thread has a clock of its own.
    record=("$ASSAY" record -d 1 -F 999 --naming-timeout 0.001)
    try "processes beside 40 busy ones" "${good[@]}" -- "${record[@]}" -p "$pids"
    [ "$(id -u)" -ne 0 ] || try "everything beside 40 busy ones" "${good[@]}" -- "${record[@]}" -a
    # All that was sampled is in the file, however long it takes to read unwind tables of new files.
    [ "$ASSAY_SAMPLER" != bpf ] || [ "$(id -u)" -ne 0 ] || check "no time is missing" sh -c '! grep "CPU time covered" said'
    # Copies of stacks that nobody takes fill a ring of perf events, which says so.
    [ "$ASSAY_SAMPLER" = bpf ] || continue
    if [ -z "$quota" ]; then
        skip_case "5% of a CPU" "no cgroup with a quota can be made here"
        continue
    fi
    try "processes with 5% of a CPU" "${good[@]}" -- in_quota "${record[@]}" -p "$pids"
    try "everything with 5% of a CPU" "${good[@]}" -- in_quota "${record[@]}" -a
done
stop
judge_all

# Programs that begin and end all the time, while the recorder runs only now and then: events and
# samples are read up to the same time, and samples stay good when the kernel has a newer list of
# mappings by the time they are read.
cat >short.c <<'END'
#include <stdint.h>
#include <time.h>
static volatile uint64_t sink;
__attribute__((noinline)) void spin(void)
{
    struct timespec now;
    do {
        for (int i = 0; i < 100000; i++) sink += sink * sink;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_nsec < 20000000);
}
__attribute__((noinline)) void work(void) { spin(); sink++; }
int main(void) { work(); return 0; }
END
short=brief-$$
gcc -O2 -fomit-frame-pointer -o "$short" short.c
for _ in 1 2 3 4; do
    (while :; do "./$short"; done) &
    started+=("$!")
done
ASSAY_SAMPLER=bpf
if [[ " ${samplers[*]} " = *" bpf "* ]] && [ "$(id -u)" -eq 0 ] && [ -n "$quota" ]; then
    program=$short
    try "short programs with 5% of a CPU" --complete 97 --points 30 --least 100 --with-loader --walked \
        -- in_quota "$ASSAY" record -d 3 -F 499 --naming-timeout 0.001 -a
    program=$busy
else
    skip_case "short programs with 5% of a CPU" "it takes BPF and a cgroup with a quota"
fi
kill "${started[@]}"
started=()
judge_all

# At the lowest priority less may be seen, and what is seen is right.
for ASSAY_SAMPLER in "${samplers[@]}"; do
    start 4
    try "the lowest priority" -- nice -n 19 "$ASSAY" record -p "$pids" -d 2 --naming-timeout 0.001
    stop
    judge_all
done
