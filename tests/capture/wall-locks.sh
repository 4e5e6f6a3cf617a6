# SPDX-License-Identifier: Apache-2.0
# Locks whose holders have other numbers than here, in a pid namespace; and locks of the kernel.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O1 -g -pthread -o convoy "$subjects/convoy.c"
if unshare --pid --fork true 2>/dev/null; then
    unshare --pid --fork --kill-child ./convoy owner 60 &
    outer=$!
    started+=("$outer")
    inside() { inner=$(pgrep -P "$outer") && [ "$(ls "/proc/$inner/task" | wc -l)" -eq 6 ]; }
    wait_until 30 inside
    "$ASSAY" triage -p "$inner" -d 2 --json >owner.json
    end_process "$outer"
    started=()
    check "the owner of a mutex in a pid namespace" python3 -c '
import json
d = json.load(open("owner.json"))
print(d)
assert d["verdict"] == "lock" and d["holder"] == "keep_it" and d["lock"] == "lock"'
else
    echo "(no pid namespaces here)"
fi

# Threads that map and unmap wait for the address space of their process.
cat >maps.c <<'C'
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
static double until;
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
__attribute__((noinline)) static void maps(void)
{
    char *place = mmap(0, 8 << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (place != MAP_FAILED)
        munmap(place, 8 << 20);
}
static void *run(void *unused)
{
    while (now() < until)
        maps();
    return unused;
}
int main(void)
{
    pthread_t threads[8];
    until = now() + 3;
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    return 0;
}
C
gcc -O1 -g -pthread -o maps maps.c
if ls -d /sys/kernel/tracing/events/lock/contention_begin >/dev/null 2>&1 || [ ! -d /sys/kernel/tracing/events ]; then
    "$ASSAY" record -q -m wall,lock -o maps.pb.gz -- ./maps
    "$ASSAY" triage --json maps.pb.gz >maps.json
    check "a lock of the kernel" python3 -c '
import json
d = json.load(open("maps.json"))
print(d)
assert d["ns"]["lock"] > 1e9
assert d["verdict"] != "lock" or "[kernel lock]" in d["stack"]'
    "$ASSAY" report --tag state=lock maps.pb.gz >maps.txt
    check "... is seen where threads wait for it" sh -c 'grep -qF "[kernel lock]" maps.txt && grep -q " maps$" maps.txt'
else
    echo "(this kernel does not report its locks)"
fi
