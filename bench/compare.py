#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What comparisons cost: a gate on two recordings, and verdicts of a fleet's day beside the plain
diff of the same. See README.md, and compare.sh, which calls this."""

import argparse
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from protobuf import field, varint
from server import Bench

RATE, SECONDS, STACKS, FUNCTIONS = 198, 600, 5000, 2000
BEGIN = 1_700_000_000


def recording(seed):
    """Ten minutes at 99 Hz on two busy cores, each sample with its time."""
    chance, draw = random.Random(1), random.Random(seed)
    strings = ["", "cpu", "nanoseconds"] + [f"function_{i}" for i in range(FUNCTIONS)]
    dictionary = b"".join(field(n, b"") for n in (1, 2, 3, 4, 6, 7))
    for i in range(FUNCTIONS):
        dictionary += field(2, field(3, field(1, i + 1))) + field(3, field(1, i + 3))
    dictionary += b"".join(field(5, text) for text in strings)
    for _ in range(STACKS):
        frames = b"".join(varint(1 + int(FUNCTIONS * chance.random() ** 3)) for _ in range(25))
        dictionary += field(7, field(1, frames))
    times = [[] for _ in range(STACKS)]
    for i in range(RATE * SECONDS):
        at = BEGIN * 10**9 + i * 10**9 // RATE
        times[int(STACKS * draw.random() ** 2)].append(at)
    period = 10**9 // 99
    samples = b"".join(
        field(2, field(1, i + 1) + field(4, b"".join(varint(period) for _ in taken))
              + field(5, struct.pack(f"<{len(taken)}Q", *taken)))
        for i, taken in enumerate(times) if taken)  # fmt: skip
    body = field(1, field(1, 1) + field(2, 2)) + samples + varint(3 << 3 | 1)
    body += struct.pack("<Q", BEGIN * 10**9) + field(4, SECONDS * 10**9)
    body += field(5, field(1, 1) + field(2, 2)) + field(6, period)
    return field(1, field(2, field(2, body))) + field(2, dictionary)


def measure_gate(bench):
    print(f"Two recordings of {SECONDS} s, {RATE * SECONDS:,} samples with times each, {STACKS:,} "
          f"stacks of {FUNCTIONS:,} functions\n")
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        files = [str(pathlib.Path(folder) / f"{name}.otlp") for name in ("base", "new")]
        for seed, path in enumerate(files):
            pathlib.Path(path).write_bytes(recording(seed))
        best = float("inf")
        for _ in range(3 if bench.quick else 7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([bench.assay, "gate", "--base", files[0], "--new", files[1]],
                                  stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode not in (0, 3, 4) or "compared" not in done.stdout:
                sys.exit(f"The gate failed: {done.stdout}")
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"        {done.stdout.splitlines()[-1]}")
    bench.bar(best <= 1, f"{best:.2f} s of CPU time for the gate, wanted 1")
    print()


def cpu_of(url):
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    return float(re.search(r"^process_cpu_seconds_total (\S+)", text, re.MULTILINE)[1])


def answer(address):
    """Maintenance of what was just stored may have the memory for a while."""
    while True:
        try:
            return urllib.request.urlopen(address).read()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(float(error.headers.get("Retry-After") or 1))


def cost(url, path, question, turns):
    """CPU and elapsed seconds of the cheapest answer, after one that reads what isn't in memory."""
    least, shortest = float("inf"), float("inf")
    for turn in range(turns + 1):
        before, began = cpu_of(url), time.perf_counter()
        body = answer(f"{url}/api/v1/{path}?{urllib.parse.urlencode(question)}")
        elapsed, spent = time.perf_counter() - began, cpu_of(url) - before
        if turn:
            least, shortest = min(least, spent), min(shortest, elapsed)
    return least, shortest, len(body)


def fill(bench, url, pid):
    bench.simulate(url, pid, "--agents", "20", "--services", "100", "--services-per-agent", "5",
                   "--rows", "100", "--stacks-known", "0.99", "--interval",
                   "30m" if bench.quick else "5m", "--duration", "24h", "--from", "now-1d")  # fmt: skip


def beside_diff(bench, url, name, query):
    """How many times the plain diff's CPU time the verdicts take."""
    question, turns = {"query": query, "from": "now-1d", "to": "now"}, 3 if bench.quick else 7
    diff = cost(url, "diff", question | {"format": "flame"}, turns)
    verdicts = cost(url, "compare", question | {"limit": 20000}, turns)
    for what, (spent, elapsed, length) in (("diff", diff), ("verdicts", verdicts)):
        print(f"        {name:14}{what:10}{1000 * spent:>9.0f} ms CPU{1000 * elapsed:>9.0f} ms "
              f"{length / 1024:>8.0f} KiB", flush=True)  # fmt: skip
    return verdicts[0] / diff[0]


def measure_page(bench):
    print("A day of 100 services on 20 hosts, a profile of each every "
          f"{30 if bench.quick else 5} minutes, 100 rows each; a day against the same day\n")
    with bench.server() as (url, pid):
        fill(bench, url, pid)
        beside_diff(bench, url, "one service", 'cpu{service="service-007"}')
        try:
            ratio = beside_diff(bench, url, "all services", "cpu")
            bench.bar(ratio <= 2, f"verdicts of all services, with the default memory, take {ratio:.2f} "
                                  "times the plain diff's CPU time, wanted 2")  # fmt: skip
        except urllib.error.HTTPError as error:
            bench.bar(False, f"verdicts of all services in the default memory: {error.read().decode()}")
        peak = re.search(r"^VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        print(f"        {int(peak[1]) // 1024} MiB resident at most; memory_limit is 256 MiB")
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    bench = Bench(parser.parse_args())
    measure_gate(bench)
    measure_page(bench)
    sys.exit(1 if bench.missed else 0)


if __name__ == "__main__":
    main()
