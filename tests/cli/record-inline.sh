# SPDX-License-Identifier: Apache-2.0
# Recording a program whose work is in functions that were inlined: they are in the stacks, with
# files and lines.
command -v gcc >/dev/null || { echo "There is no gcc here."; exit 77; }
cat >hot.c <<'END'
#include <stdlib.h>
static inline double mix(double x)
{
    return x * 1.0000001 + 0.5;
}
static inline double repeat(double x, int n)
{
    for (int i = 0; i < n; i++)
        x = mix(x);
    return x;
}
__attribute__((noinline)) double work(int n)
{
    return repeat(n, 100000000) + 1;
}
int main(int argc, char **argv)
{
    return work(argc + atoi(argv[1])) < 0;
}
END
gcc -g -O2 -o hot hot.c
status=0
"$ASSAY" record -F 999 -o hot.pb.gz -- ./hot 7 2>said || status=$?
if grep perf_event_paranoid said || grep 'no perf events' said; then
    echo "Samples cannot be taken here: $(cat said)"
    exit 77
fi
[ $status = 0 ]

# All of it is in work, and nearly all in what was inlined there.
"$ASSAY" report --tree --min 2 hot.pb.gz >tree
for name in main work repeat; do
    grep -w "$name" tree >/dev/null
done
"$ASSAY" report --lines mix hot.pb.gz >lines
grep 'return x \* 1.0000001 + 0.5;' lines >/dev/null

# Without debug information, the function is what its symbol says.
gcc -O2 -o plain hot.c
"$ASSAY" record -F 999 -o plain.pb.gz -- ./plain 7 2>said
"$ASSAY" report plain.pb.gz >functions
grep -w work functions >/dev/null
[ "$(grep -cw mix functions)" = 0 ]
