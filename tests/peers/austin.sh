# SPDX-License-Identifier: Apache-2.0
# Austin's samples of a Python program: time in all and by function, as its lines add up; and Austin's
# own count of samples.
command -v austin >/dev/null || { echo "There is no austin here." && exit 77; }
cat >load.py <<'END'
def inner(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def other(n):
    return len([str(i) for i in range(n)])
def both():
    inner(300000)
    other(50000)
for _ in range(40):
    both()
END
austin -i 2ms -o own.austin "$(python3 -c 'import sys; print(sys.executable)')" load.py >said 2>&1 ||
    { echo "austin can't sample here: $(tail -n 1 said)" && exit 77; }
cat >sums.py <<'END'
import collections
flat, cum, total, lines = collections.Counter(), collections.Counter(), 0, 0
for line in open("own.austin"):
    if line.startswith("#") or not line.strip():
        continue
    stack, value = line.rstrip("\n").rsplit(" ", 1)
    names = [frame.split(":")[-2] for frame in stack.split(";")[2:]]
    total += int(value)
    lines += 1
    if names:
        flat[names[-1]] += int(value)
    for name in set(names):
        cum[name] += int(value)
print("total", 1000 * total, lines)
for name in ("both", "inner", "other"):
    print(name, 1000 * flat[name], 1000 * cum[name])
END
python3 sums.py >expected
"$ASSAY" report -n 0 --format json -t wall own.austin >report.json
samples=$("$ASSAY" report -n 0 --format json -t samples own.austin | jq .total)
jq -r --argjson samples "$samples" '"total \(.total) \($samples)", (("both", "inner", "other") as $name
    | [.rows[] | select(.function == $name)] | "\($name) \(.[0].flat // 0) \(.[0].cum // 0)")' report.json >got
cat got
diff expected got
jq -e '.rows | any(.function == "inner" and .flat > 0)' report.json
