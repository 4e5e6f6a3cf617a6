# SPDX-License-Identifier: Apache-2.0
# Chance: sums of samples are compared with known amounts
# New memory by `assay record --mode faults`: known amounts at known sites, by page, by huge page, from
# files, shared, by a system call, given back and touched again, and by two threads at once.
ASSAY_SAMPLERS=bpf . "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o toucher "$ROOT/tests/heap/toucher.c"
if ! echo | "$ASSAY" record --mode faults --heap-interval 64K -o faults.pb.gz -- ./toucher >truth 2>said; then
    cat said
    grep -q rss_stat said && skip_all "This kernel doesn't show the counters: $(cat said)"
    exit 1
fi
cat said
check "known amounts" python3 - "$ASSAY" <<'END'
import json, math, subprocess, sys

def values(kind):
    text = subprocess.run(
        [sys.argv[1], "report", "-n", "0", "-t", "faulted_" + kind, "-f", "json", "faults.pb.gz"],
        check=True, capture_output=True).stdout
    return {row["function"]: row["cum"] for row in json.loads(text)["rows"]}

found = {kind: values(kind) for kind in ("anon", "file", "shmem")}
wrong = 0
for line in open("truth"):
    kind, site, amount = line.split()
    amount, got = int(amount), found[kind].get(site, 0)
    allowed = 5 * math.sqrt(amount * 65536) + amount * 0.03  # threads at the same moment
    verdict = "ok" if abs(got - amount) <= allowed else "WRONG"
    wrong += verdict == "WRONG"
    print(f"{verdict:5} {kind:5} {site:12} {got:>11} of {amount:>11}, +-{allowed:.0f}")
sys.exit(wrong > 0)
END
check "loses nothing" grep -q ' 0 lost, in' said
check "whole stacks" grep -q ', 100% of stacks complete' said

# A running process, and what was there before isn't new.
mkfifo go
./toucher <go >truth &
subject=$!
started+=("$subject")
exec 5>go
"$ASSAY" record --mode faults --heap-interval 64K -p "$subject" -o running.pb.gz 2>said &
recorder=$!
started+=("$recorder")
# It waits for events, by poll(), once everything is attached and the recording has begun.
wait_until 60 grep -q '^7 ' "/proc/$recorder/syscall"
echo >&5
wait "$subject"
wait "$recorder" || true
cat said
check "a running process" python3 - "$ASSAY" <<'END'
import json, subprocess, sys
text = subprocess.run([sys.argv[1], "report", "-n", "0", "-t", "faulted_anon", "-f", "json", "running.pb.gz"],
                      check=True, capture_output=True).stdout
got = {row["function"]: row["cum"] for row in json.loads(text)["rows"]}.get("site_small", 0)
print(got)
sys.exit(abs(got - (64 << 20)) > 14 << 20)
END
check "a cgroup is refused" test "$("$ASSAY" record --mode faults --cgroup /sys/fs/cgroup -d 1 -o no.pb.gz 2>&1 | grep -c 'not a cgroup')" = 1
