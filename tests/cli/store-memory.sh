# SPDX-License-Identifier: Apache-2.0
# A server with little memory under pushes and queries: it stays below its limit and what it takes
# anyway, tells senders to come back instead, and goes on.
. "$ROOT/tests/server/common.bash"
if [ "${ASSAY_SANITIZED:-}" ] || [[ $(ldd "$ASSAY") == *libasan* ]]; then
    echo "A sanitizer takes more memory than the limit."
    exit 77
fi
limit_mib=64 overhead_mib=48
start_server small --data data --memory-limit ${limit_mib}M
python3 - "$url" <<'PYTHON'
import random, sys, threading, time, urllib.request, urllib.error, urllib.parse
url = sys.argv[1]
counts = {"stored": 0, "later": 0, "answered": 0, "busy": 0}
lock = threading.Lock()

def count(what):
    with lock:
        counts[what] += 1

deadline = time.monotonic() + 400

def push(seed):
    chance = random.Random(seed)

    def stack():
        return ";".join(f"function_{chance.randint(0, 3000)}" for _ in range(chance.randint(5, 25)))

    known = [stack() for _ in range(2000)]
    # Twelve, and then on until enough of all senders' are stored: how many fit at once depends on
    # how fast the machine is.
    i = 0
    while i < 12 or (counts["stored"] < 10 and time.monotonic() < deadline):
        i += 1
        lines = [f"main;{chance.choice(known)} {chance.randint(1, 9)}" for _ in range(6000)]
        lines += [f"main;{stack()} 1" for _ in range(200)]
        body = "\n".join(lines).encode()
        request = urllib.request.Request(
            f"{url}/api/v1/push?service_name=service{seed % 4}&format=folded", body)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                answer.read()
            count("stored")
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            assert error.code == 503, (error.code, text)
            assert error.headers["Retry-After"] == "1" or "full" in text, text
            count("later")

def ask():
    for i in range(15):
        query = urllib.parse.urlencode({"query": "process_cpu", "from": "now-1h", "to": "now+1h"})
        try:
            with urllib.request.urlopen(f"{url}/api/v1/flame?{query}", timeout=300) as answer:
                answer.read()
            count("answered")
        except urllib.error.HTTPError as error:
            error.read()
            assert error.code in (400, 404, 413, 503), error.code
            count("busy")

threads = [threading.Thread(target=push, args=(i,)) for i in range(8)]
threads += [threading.Thread(target=ask) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(counts)
assert counts["stored"] >= 10 and counts["later"] >= 1, counts
assert counts["answered"] >= 1 and counts["answered"] + counts["busy"] == 60, counts
PYTHON
peak_kib=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")
echo "peak $((peak_kib >> 10)) MiB"
get /metrics >metrics.txt
grep -E '^assay_memory_(budget|pushes)' metrics.txt
[ "$peak_kib" -le $(((limit_mib + overhead_mib) << 10)) ]
stop_server
