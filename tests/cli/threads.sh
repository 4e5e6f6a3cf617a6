# SPDX-License-Identifier: Apache-2.0
# Threads that do the same are shown once, and single threads are recorded.
command -v cc >/dev/null || { echo "There is no compiler here to build the program with."; exit 77; }
cat >known.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile unsigned long sink;
static void *wait_here(void *name) { prctl(PR_SET_NAME, name); for (;;) pause(); return NULL; }
static __attribute__((noinline)) void spin_one(void) { for (;;) sink++; }
static __attribute__((noinline)) void spin_two(void) { for (;;) sink--; }
static void *one(void *unused) { spin_one(); return unused; }
static void *two(void *unused) { dprintf(1, "%d\n", (int)syscall(SYS_gettid)); spin_two(); return unused; }
int main(int argc, char **argv)
{
    pthread_t threads[6];
    (void)argv;
    if (argc > 1) {
        pthread_create(&threads[4], NULL, one, NULL);
        pthread_create(&threads[5], NULL, two, NULL);
        pause();
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_here, "worker");
    pthread_create(&threads[3], NULL, wait_here, "other");
    pause();
}
END
cc -O1 -pthread -o known known.c
./known &
pid=$!
all_wait() {
    local tasks=("/proc/$pid/task"/*)
    [ ${#tasks[@]} = 5 ] && [ "$(cat "${tasks[@]/%//status}" 2>/dev/null | grep -c '^State:.S')" = 5 ]
}
until all_wait; do sleep 0.05; done
if ! "$ASSAY" stacks "$pid" >stacks.txt 2>said; then
    kill "$pid"
    echo "Stacks can't be read here: $(head -1 said)"
    exit 77
fi
grep -E '^threads? ' stacks.txt | sed -E 's/[0-9]+/N/g' | sort
"$ASSAY" stacks --all-threads "$pid" 2>/dev/null | grep -c '^thread '
kill "$pid"

./known busy >tid &
pid=$!
until [ -s tid ]; do sleep 0.05; done
status=0
"$ASSAY" record -t "$(cat tid)" -d 3 -o x.folded 2>said || status=$?
kill "$pid"
[ "$status" = 0 ] || {
    echo "Nothing can be recorded here: $(head -1 said)"
    exit 77
}
if grep -q spin_two x.folded; then echo "its thread was recorded"; fi
if grep -q spin_one x.folded; then echo "another thread was recorded"; fi
own=$(sed -nE "s/^assay: ([0-9]+) samples of thread $(cat tid), of ([0-9]+) samples .*/\1 \2/p" said)
read -r kept all <<<"$own"
# A sample stands for a period of 99 Hz.
[ $((kept * 10101010)) = "$(awk '{ sum += $NF } END { printf "%.0f", sum }' x.folded)" ] || echo "x.folded does not have $kept samples"
[ "$kept" -lt "$all" ] && echo "the other thread's samples are not counted as its own"
