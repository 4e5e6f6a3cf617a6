# SPDX-License-Identifier: Apache-2.0
# Code is found in its file however the file was reached and however late the recorder looks: programs
# in another root that have ended, programs that run from memory, and stacks that are longer than a
# copy.
. "$ROOT/tests/capture/common.bash"
need gcc python3 chroot

cat >work.c <<'END'
#include <stdint.h>
#include <time.h>
static volatile uint64_t sink;
static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
__attribute__((noinline)) void NAME(void)
{
    double before = used(); /* of the program that executed this one */
    while (used() < before + 0.1)
        for (int i = 0; i < 10000; i++)
            sink += sink * sink;
}
int main(void) { NAME(); return sink == 1; }
END
# Without a build ID, only the file itself tells what it is.
compile() { gcc -O2 -static -fomit-frame-pointer -Wl,--build-id=none -DNAME="$1" -o "$2" work.c; }

cat >parent.c <<'END'
#include <sys/wait.h>
#include <unistd.h>
/* Runs its argument ten times, one after the other, writes a line and waits to be killed. */
int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < 10; i++) {
        if (!fork()) {
            execv(argv[1], argv + 1);
            _exit(1);
        }
        wait(0);
    }
    if (write(1, "done\n", 5) == 5)
        pause();
    return 0;
}
END

# all_in FILE COMM[|COMM...] FUNCTION LEAST: nearly all samples of a program are in the function, at
# least so many, and they are whole.
all_in() {
    python3 - "$@" <<'END'
import os, sys
sys.path.insert(0, os.environ["ROOT"] + "/tests/capture")
import recording
path, comm, function, least = sys.argv[1:]
samples = [s for s in recording.read(path) if s.labels["comm"] in comm.split("|") and s.frames]
found = [s for s in samples if any(f.name == function for f in s.frames)]
cut = [s for s in samples if recording.is_cut(s)]
total, inside = sum(s.count for s in samples), sum(s.count for s in found)
print(f"{total} samples, {inside} in {function}, {sum(s.count for s in cut)} cut")
for sample in cut:
    print("cut:", " ".join(f"{f.name}@{f.binary}" for f in sample.frames[:8]))
wrong = {f.name for s in samples for f in s.frames if "decoy" in f.name or f.binary.startswith("[jit")}
# The beginning and the end of a program are short. In the function itself no stack is cut.
incomplete = sum(s.count for s in cut) > max(1, total // 100)
incomplete |= any(frame.name == function for s in cut for frame in s.frames)
sys.exit(bool(total < int(least) or inside < 0.8 * total or incomplete or wrong))
END
}

# Programs in another root, recorded by somebody who looks when all of them have ended. Under the
# same path is another program here.
in_root() {
    local root=$PWD/root recorder
    mkdir -p "$root$PWD"
    compile right "$root$PWD/hidden" && compile decoy "$PWD/hidden" || return 1
    gcc -O2 -static -o "$root/parent" parent.c || return 1
    rm -f gate ran && mkfifo gate || return 1
    sh -c "read line && exec chroot '$root' /parent '$PWD/hidden'" <gate >ran &
    started+=("$!")
    exec 3>gate
    "$ASSAY" record -p "$!" -F 99 -o placed.pb.gz 2>said 3>&- &
    recorder=$!
    started+=("$recorder")
    wait_until 60 sampling "$recorder" || return 1
    kill -STOP "$recorder"
    echo >&3
    wait_until 120 grep -q 'done' ran || return 1
    kill -INT "$recorder"
    kill -CONT "$recorder"
    wait "$recorder" || { cat said && return 1; }
    sed 's/^/# /' said
    # Others may have started more processes meanwhile than the kernel keeps for a reader that is
    # stopped.
    ! grep -q 'process events lost' said || return 0
    all_in placed.pb.gz hidden right 20
}
# Whether a recorder waits for samples: it has perf events, and sleeps in poll.
sampling() {
    find "/proc/$1/fd" -lname '*perf_event*' | grep -q . && grep -q poll "/proc/$1/wchan"
}

# A program that runs from a memfd.
from_memory() {
    compile right memory || return 1
    cat >memory.py <<'END'
import os, sys
program = os.memfd_create("program")
os.write(program, open(sys.argv[1], "rb").read())
os.execve(program, ["program"], {})
END
    "$ASSAY" record -F 99 -o placed.pb.gz -- python3 memory.py memory 2>said || { cat said && return 1; }
    sed 's/^/# /' said
    # Older kernels call it by its descriptor.
    all_in placed.pb.gz "memfd:program|3|4|5" right 3
}

# The first sample of a process comes as a copy of its stack: here that is longer than one copy.
deep() {
    cat >deep.c <<'END'
#include <stdint.h>
#include <string.h>
#include <time.h>
static volatile uint64_t sink;
static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
__attribute__((noinline)) void right(void)
{
    while (used() < 0.1)
        for (int i = 0; i < 10000; i++)
            sink += sink * sink;
}
__attribute__((noinline)) void down(int depth)
{
    char frame[12000];
    memset(frame, depth, sizeof(frame));
    if (depth)
        down(depth - 1);
    else
        right();
    sink += frame[sink % sizeof(frame)];
}
int main(void) { down(14); return sink == 1; }
END
    gcc -O2 -fomit-frame-pointer -o deep deep.c && gcc -O2 -o parent parent.c || return 1
    "$ASSAY" record -F 99 -o placed.pb.gz -- ./parent ./deep 2>said >ran &
    local recorder=$!
    started+=("$recorder")
    wait_until 60 grep -q 'done' ran || return 1
    kill -TERM "$recorder"
    wait "$recorder"
    sed 's/^/# /' said
    all_in placed.pb.gz deep right 20
}

for ASSAY_SAMPLER in "${samplers[@]}"; do
    check "a program in memory ($ASSAY_SAMPLER)" from_memory
    # Perf events copy 32 KiB of each stack.
    [ "$ASSAY_SAMPLER" != bpf ] || check "a deep stack ($ASSAY_SAMPLER)" deep
    if [ "$(id -u)" -eq 0 ]; then
        check "another root ($ASSAY_SAMPLER)" in_root
    else
        skip_case "another root ($ASSAY_SAMPLER)" "this is not root"
    fi
done
