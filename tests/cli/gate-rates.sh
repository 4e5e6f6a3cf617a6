# SPDX-License-Identifier: Apache-2.0
# The gate on profiles whose sampling rates or numbers of requests differ between the sides, and
# budgets of cores, of cost per request and of subtrees.
cat >profiles.py <<'PYTHON'
import random, sys
sys.path.insert(0, sys.argv[1] + "/tests/server")
from protobuf import field, varint

def profile(name, rate, load=1, slow=1.0, period=True):
    """A minute of 20 functions on one core, sampled at `rate`: samples/count and cpu/nanoseconds."""
    draw, names = random.Random(name), [f"f{i}" for i in range(20)]
    strings = ["", "samples", "count", "cpu", "nanoseconds", "even", "odd"] + names
    out = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    for i in range(20):
        mean = rate * 60 * load * (0.05 if i else 0.05 * slow)
        count = round(draw.gauss(mean, mean**0.5))
        out += field(2, field(1, varint(i + 3) + varint(1 + i % 2)) + field(2, varint(count) + varint(count * 10**9 // rate)))
    for i in range(22):
        out += field(4, field(1, i + 1) + field(4, field(1, i + 1)))
        out += field(5, field(1, i + 1) + field(2, 5 + i))
    out += b"".join(field(6, text) for text in strings)
    out += field(9, 1_700_000_000 * 10**9) + field(10, 60 * 10**9)
    if period:
        out += field(11, field(1, 3) + field(2, 4)) + field(12, 10**9 // rate)
    open(name + ".pb", "wb").write(out)

profile("base", 99)
profile("fast", 997)
profile("slow", 997, slow=1.6)
profile("double", 99, load=2)
profile("nothing", 997, period=False)
PYTHON
PYTHONDONTWRITEBYTECODE=1 python3 profiles.py "$ROOT"
gate() { local code=0; "$ASSAY" gate --base base.pb "$@" >report 2>&1 || code=$?; echo "exit $code"; }
echo "== the same code at ten times the rate, by number of samples"
gate --new fast.pb -t samples
gate --new fast.pb -t cpu
echo "== a slower function at ten times the rate"
for type in samples cpu; do
    gate --new slow.pb -t $type
    grep -o '^failed  *f[0-9]*: ' report
done
echo "== a rate that one side doesn't say"
gate --new nothing.pb -t samples
cat report
echo "== twice the traffic: per second, per request, and with requests on one side only"
gate --new double.pb
gate --new double.pb --base-requests 1000 --new-requests 2000
tail -n 1 report
gate --new double.pb --base-requests 1000
cat report
echo "== a rate of false discoveries"
gate --new slow.pb --fdr 0.01
gate --new slow.pb --fdr 0.7
cat report
echo "== budgets"
budget() { # LIMIT [options]: of f0, which uses 0.05 of a core, and 6 ms for each of 500 requests
    printf 'budgets: [{name: mine, function: "%s", %s}]\n' "$1" "$2" >budget.yaml
    gate --new fast.pb --budget budget.yaml "${@:3}"
    sed -n 's/^\([a-z]*\)  *\(f0\|even\): \([a-z_]*\) is .*/\1 \2 \3/p' report
}
budget '^f0$' 'max_cores: 0.04'
budget '^f0$' 'max_cores: 0.06'
budget '^f0$' 'max_per_request: 5000000' --base-requests 500 --new-requests 500
budget '^f0$' 'max_per_request: 7000000' --base-requests 500 --new-requests 500
budget '^even$' 'max_share: 45%'
budget '^even$' 'max_share: 55%'
