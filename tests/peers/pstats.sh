#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real profile of cProfile: each function's own time and calls as Python's pstats gives them.

skip() {
    echo "$1"
    exit 77
}
command -v python3 >/dev/null || skip "There is no Python here to record with."
cat >load.py <<'END'
import json
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def encode():
    return [json.dumps(list(range(50))) for _ in range(100)]
def main():
    encode()
    fibonacci(14)
main()
END
python3 -m cProfile -o load.pstats load.py
python3 - <<'END' >theirs
import collections, pstats
time, calls = collections.Counter(), collections.Counter()
for (_, _, name), (_, count, own, _, _) in pstats.Stats("load.pstats").stats.items():
    time[name] += round(own * 1e9)
    calls[name] += count
for name in sorted(time):
    print(name, time[name], calls[name], sep="\t")
END
for type in wall calls; do
    "$ASSAY" report load.pstats --sample-type $type --format json --top 0 --original-names >$type.json
done
python3 - <<'END' >ours
import collections, json
sums = {}
for kind in ("wall", "calls"):
    sums[kind] = collections.Counter()
    for row in json.load(open(kind + ".json"))["rows"]:
        sums[kind][row["function"]] += row["flat"]
for name in sorted(sums["wall"]):
    print(name, sums["wall"][name], sums["calls"][name], sep="\t")
END
diff -u theirs ours
