# SPDX-License-Identifier: Apache-2.0
# Stacks of large frames are whole, as far as each sampler can copy them; where one cannot, no stack is
# called complete.
ASSAY_SAMPLERS=${ASSAY_SAMPLERS:-bpf perf ptrace}
. "$ROOT/tests/capture/common.bash"
need gcc python3

cat >frames.c <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
volatile uint64_t sink;
__attribute__((noinline)) void spin(void) { for (int i = 0; i < 600000000; i++) sink += (uint64_t)i; }
__attribute__((noinline)) void large(int left)
{
    char room[40000];
    memset(room, left, sizeof(room));
    sink += (uint64_t)room[left];
    if (left > 1) large(left - 1); else spin();
    sink += (uint64_t)room[left + 1];
}
int main(int argc, char **argv) { large(atoi(argv[argc - 1])); return 0; }
END
gcc -O1 -o frames frames.c

# whole FRAMES: the share of stacks in spin() that begin with _start and have all frames.
cat >whole.py <<'END'
import os, sys
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests", "capture"))
import recording
frames, want = int(sys.argv[1]), sys.argv[2] == "whole"
stacks = [s for s in recording.read("frames.pb.gz") if any(f.name == "spin" for f in s.frames)]
total = sum(s.count for s in stacks)
whole = sum(s.count for s in stacks if not recording.is_cut(s)
            and [f.name for f in s.frames].count("large") == frames and s.frames[0].name == "_start")
uncut = sum(s.count for s in stacks if not recording.is_cut(s))
print(f"{total} samples in spin(), {whole} of them whole, {uncut} called complete")
sys.exit(total < 5 or (whole if want else uncut) != (total if want else 0))
END
for ASSAY_SAMPLER in "${samplers[@]}"; do
    for frames in 1 5; do
        expected=whole
        # The kernel copies less than 64 KiB, of the stacks of users without privilege half of it.
        if [ "$ASSAY_SAMPLER" = perf ] && { [ $frames = 5 ] || [ "$(id -u)" != 0 ]; }; then expected="cut"; fi
        "$ASSAY" record -q -F 199 -o frames.pb.gz -- ./frames $frames
        check "$frames frames of 40 kB ($ASSAY_SAMPLER): $expected" python3 whole.py $frames $expected
    done
done
