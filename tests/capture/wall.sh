# SPDX-License-Identifier: Apache-2.0
# Wall-clock time: the states of threads with known timing add up, also on a busy machine.
# Chance: the time that threads wait for a CPU depends on what else runs.
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -pthread -o states "$subjects/states.c"
"$ASSAY" record -q -m wall -o wall.pb.gz -- ./states 3 >truth
check "states" python3 "$capture/states.py" wall.pb.gz <truth

for _ in $(seq 12); do
    sh -c 'while :; do :; done' &
    started+=($!)
done
"$ASSAY" record -q -m wall -o busy.pb.gz -- ./states 3 >truth
check "states beside busy processes" python3 "$capture/states.py" busy.pb.gz <truth
for pid in "${started[@]}"; do end_process "$pid"; done
started=()

# Threads that wait for nothing but a CPU: while they move from one to the next, and four of one CPU.
gcc -O2 -pthread -o queues "$subjects/queues.c"
for kind in moves spin; do
    "$ASSAY" record -q -m wall -o queues.pb.gz -- ./queues $kind 3 >truth
    check "threads in queues ($kind)" python3 "$capture/queues.py" queues.pb.gz <truth
done

# The other modes are parts of it.
"$ASSAY" record -q -m lock -o lock.pb.gz -- ./states 2 >truth
"$ASSAY" info lock.pb.gz >info
check "types of --mode lock" grep -E '^types +contentions/count|delay/nanoseconds' info
check "no CPU time in --mode lock" sh -c '! grep -q cpu/nanoseconds info'

# A process that runs already, with threads that were asleep before.
./states 60 >truth &
started+=($!)
until [ "$(ls "/proc/$!/task" | wc -l)" -eq 11 ]; do sleep 0.05; done
"$ASSAY" record -q -m offcpu -d 2 -p "$!" -o running.pb.gz
end_process "$!"
started=()
"$ASSAY" report --tag comm=parked running.pb.gz >parked
check "a thread that sleeps all the time" grep -E 'in total, (1\.9|2)[0-9.]*s .*after filters' parked
check "... is seen where it sleeps" grep '%  parked$' parked

# A cgroup: what is in it, and nothing else.
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$unified" ] && mkdir "$unified/assay-wall-$$" 2>/dev/null; then
    group=$unified/assay-wall-$$
    ./states 60 >/dev/null &
    started+=($!)
    (echo 0 >"$group/cgroup.procs"; exec ./states 60) >/dev/null &
    started+=($!)
    until [ "$(wc -l <"$group/cgroup.threads")" -eq 11 ]; do sleep 0.05; done
    "$ASSAY" record -q -m wall -d 2 --cgroup "$group" -o cgroup.pb.gz
    for pid in "${started[@]}"; do end_process "$pid"; done
    started=()
    until rmdir "$group"; do sleep 0.1; done
    check "a cgroup's waits are found" python3 "$capture/cgroup_states.py" cgroup.pb.gz 2
else
    echo "(no cgroup 2 here that can be written: waits of a cgroup are not tried)"
fi

# Short waits are left out when asked.
"$ASSAY" record -q -m offcpu --min-block 15ms -o long.pb.gz -- ./states 2 >truth
"$ASSAY" report --tag comm=writer --tag state=sleep long.pb.gz >writer || true
"$ASSAY" report --tag comm=holder --tag state=sleep long.pb.gz >holder
check "waits below --min-block are left out" sh -c '! grep -q "in total, [1-9]" writer'
check "waits above it are not" grep -E 'in total, (1\.|2)' holder

# Threads without work are below one root, unless told otherwise.
cat >pool.c <<'C'
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static void *worker(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&work, &lock);
    return unused;
}
int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, 0, worker, 0);
    sleep(30);
    return 0;
}
C
gcc -O1 -g -pthread -o pool pool.c
./pool &
started+=($!)
until [ "$(ls "/proc/$!/task" | wc -l)" -eq 5 ]; do sleep 0.05; done
"$ASSAY" record -q -m wall -d 1 -p "$!" -o idle.pb.gz
"$ASSAY" record -q -m wall --idle show -d 1 -p "$!" -o shown.pb.gz
# Without debug information libc has the other name.
printf 'sleep __clock_nanosleep\nsleep clock_nanosleep\n' >rules
"$ASSAY" record -q -m wall --idle-rules rules -d 1 -p "$!" -o rules.pb.gz
end_process "$!"
started=()
for file in idle shown rules; do "$ASSAY" report $file.pb.gz >$file.txt; done
check "a pool is idle" grep -E ' (3\.9|4\.)[0-9]*s +(79|80)[0-9.]*%  \[idle\]$' idle.txt
check "... unless told otherwise" sh -c '! grep -F "[idle]" shown.txt'
check "... or by other rules" grep -E ' (1\.0[0-9]*|9[0-9]*m|10+m)s +(19|20)[0-9.]*%  \[idle\]$' rules.txt
