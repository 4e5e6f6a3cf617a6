# SPDX-License-Identifier: Apache-2.0
# Allocations of a running program that has no probes, by uprobes at its allocator's functions: known
# amounts at known sites, chains of realloc, 64 threads that free each other's memory, C++; what it
# costs is said first, and too much of it isn't done.
# Chance: sums of samples are compared with known amounts
ASSAY_SAMPLERS=bpf . "$ROOT/tests/capture/common.bash"
need gcc g++ python3
export VALUES=8 # two sites with four types

gcc -O2 -g -pthread -o known "$ROOT/tests/heap/known.c"
ready() { is_recording "$recorder" || ! kill -0 "$recorder"; }
# begin COMMAND...: it runs, and waits for a line on descriptor 5; it is recorded as heap.pb.gz.
begin() {
    rm -f go
    mkfifo go
    "$@" <go >truth &
    subject=$!
    started+=("$subject")
    exec 5>go
    "$ASSAY" record --mode heap --max-slowdown 100000 -p "$subject" -o heap.pb.gz 2>said &
    recorder=$!
    started+=("$recorder")
    wait_until 60 ready
    grep -q 'Recording by uprobes' said || { cat said; skip_all "Uprobes cannot be used here."; }
    echo >&5
    wait_until 60 test -s truth
}
end() {
    kill -INT "$recorder"
    wait "$recorder" || true
    cat said
    echo >&5 || true
    exec 5>&-
    wait "$subject" || true
}
for case in chains threads; do
    begin ./known "$case" held
    end
    check "$case" python3 "$ROOT/tests/heap/compare.py" heap.pb.gz <truth
    check "$case loses nothing" grep -q ' 0 lost, in' said
    check "$case has whole stacks" grep -q ', 100% of stacks complete' said
done

cat >operators.cc <<'END'
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
static std::vector<char *> kept;
__attribute__((noinline)) void keep_some() {
    for (int i = 0; i < 4000; i++) kept.push_back(new char[25000]);
}
__attribute__((noinline)) void give_back() {
    for (int i = 0; i < 2000; i++) delete[] kept[i];
}
int main() {
    std::getchar();
    keep_some();
    give_back();
    std::puts("done");
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}
END
g++ -O2 -g -o operators operators.cc
begin ./operators
end
check "C++: what it holds" python3 - "$ASSAY" <<'END'
import json, subprocess, sys
rows = json.loads(subprocess.run([sys.argv[1], "report", "-n", "0", "-t", "inuse_space", "-f", "json", "heap.pb.gz"],
                                 check=True, capture_output=True).stdout)["rows"]
got = sum(row["cum"] for row in rows if row["function"].startswith("keep_some"))
print(got)
sys.exit(abs(got - 50e6) > 5 * (50e6 * 524288) ** 0.5)
END

# It does nothing but allocate.
cat >churn.c <<'END'
#include <stdlib.h>
static void *volatile sink;
int main(void) {
    for (;;) {
        sink = malloc(100);
        free(sink);
    }
}
END
gcc -O1 -o churn churn.c
./churn &
subject=$!
started+=("$subject")
if "$ASSAY" record --mode heap -d 1 -p "$subject" -o none.pb.gz 2>said; then fail "a program that only allocates is recorded"; fi
cat said
check "says how slow it would be" grep -E 'would slow the process down by [0-9]+% \(limit 20%' said
check "it runs on" kill -0 "$subject"
end_process "$subject"

gcc -O1 -static -o static churn.c 2>/dev/null || exit 0
./static &
subject=$!
started+=("$subject")
if "$ASSAY" record --mode heap -d 1 -p "$subject" -o none.pb.gz 2>said; then fail "a static program is recorded"; fi
check "a static program has a reason" grep -q 'linked statically' said
