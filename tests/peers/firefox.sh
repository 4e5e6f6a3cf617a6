#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Firefox Profiler's own command line (npm: @firefox-devtools/profiler-cli) opens what assay writes,
# and both say the same of each function: self and total, by thread. Then assay reads it back.

skip() {
    echo "$1"
    exit 77
}
command -v profiler-cli >/dev/null || skip "There is no profiler-cli here (npm install -g @firefox-devtools/profiler-cli)."
command -v python3 >/dev/null || skip "There is no python3 here."
profiler-cli --version >/dev/null 2>&1 || skip "profiler-cli needs a newer Node.js: $(node --version)."
cat >compare.py <<'END_OF_COMPARE'
import collections, json, os, subprocess, sys, time
def run(*command):
    return subprocess.run(command, capture_output=True, text=True)
def peer(path, session):
    """(thread, function) -> [self, total] in the units of the weights, and how many threads."""
    run("profiler-cli", "load", path, "--session", session)
    until = time.monotonic() + 120  # its daemon may take a while to start
    while True:
        info = run("profiler-cli", "profile", "info", "--all", "--json", "--session", session)
        if info.returncode == 0: break
        assert time.monotonic() < until, info.stderr
        time.sleep(0.2)
    out = {}
    threads = [t for p in json.loads(info.stdout)["processes"] for t in p["threads"]]
    for thread in threads:
        handle = thread.get("threadHandle") or thread["handle"]
        answer = run("profiler-cli", "thread", "functions", "--thread", handle, "--include-idle", "--limit",
                     "100000", "--json", "--session", session)
        for row in json.loads(answer.stdout)["functions"]:
            name = row.get("fullName") or row["name"]
            sums = out.setdefault(name, [0, 0])
            sums[0] += row["selfSamples"]
            sums[1] += row["totalSamples"]
    run("profiler-cli", "stop", "--session", session)
    return out, len(threads)
def ours(path, *more):
    answer = run(os.environ["ASSAY"], "report", "--format", "json", "--top", "0", *more, path)
    return {row["function"]: [row["flat"], row["cum"]] for row in json.loads(answer.stdout)["rows"]}
source, path, scale, threads, more = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
theirs, found = peer(path, f"assay-{os.getpid()}")
assert found == threads, found
expected = ours(source, *more)
assert len(expected) > 2
for name, sums in expected.items():
    for mine, other in zip(sums, theirs[name]):
        assert abs(mine - other * scale) <= 1e-9 * abs(mine), (name, sums, theirs[name])
assert set(theirs) == set(expected), set(theirs) ^ set(expected)
print(os.path.basename(source), len(expected), "functions,", found, "threads: the same")
END_OF_COMPARE
fixtures=$ROOT/tests/fixtures
export ASSAY
# Time in nanoseconds is milliseconds there; events have times and threads.
"$ASSAY" convert "$fixtures/man/cpu.pb.gz" -o cpu.firefox.json.gz
python3 compare.py "$fixtures/man/cpu.pb.gz" cpu.firefox.json.gz 1e6 1
"$ASSAY" convert "$fixtures/perf-script/stacks.txt" -o perf.firefox.json
python3 compare.py "$fixtures/perf-script/stacks.txt" perf.firefox.json 1e6 2
# Read back, they are what they were.
"$ASSAY" convert --sample-type wall cpu.firefox.json.gz -o back.folded
"$ASSAY" convert --sample-type cpu "$fixtures/man/cpu.pb.gz" -o wanted.folded
cmp back.folded wanted.folded
