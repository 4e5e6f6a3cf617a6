#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libassay_heap.so costs: instructions (callgrind) and nanoseconds of a malloc/free pair of 64
bytes without it, with it and nobody attached, and while `assay record --mode heap` reads it; and
whole programs in interleaved runs, beside heaptrack where that is installed. See README.md."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PUBLISHED_IDLE_NS = 10.4  # the reference sampler of the OpenTelemetry contract, x86-64
PYTHON_WORK = (
    "import json\n"
    "for i in range(300): json.loads(json.dumps([{'k%d' % j: [j] * 20} for j in range(2000)]))\n"
    "print(__import__('time').process_time())"
)


def modes(build, interval):
    """{name: (command prefix, environment)}"""
    library = f"{build}/sdk/libassay_heap.so"
    record = [f"{build}/assay", "record", "--mode", "heap", "-q", "-o", "heap.pb.gz"]
    return {
        "without": ([], {}),
        "idle": ([], {"LD_PRELOAD": library}),
        "attached": (record + ["--heap-interval", interval, "--"], {}),
    }


def run(prefix, command, extra):
    return subprocess.run(
        prefix + command, env={**os.environ, **extra}, check=True, capture_output=True, text=True
    )


def instructions(build, pair, few=20000, many=120000):
    """Of a pair, as the difference of a long and a short run, in each mode."""
    result = {}
    for name, (prefix, extra) in modes(build, "64G").items():
        counts = []
        for count in (few, many):
            command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", pair]
            done = run(prefix, command + [str(count)], extra)
            counts.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
        result[name] = (counts[1] - counts[0]) / (many - few)
    return result


def nanoseconds(build, pair, rounds, count=20000000):
    """Of a pair: medians of interleaved runs, with an interval at which hardly any is sampled, and
    with the default."""
    kinds = modes(build, "64G")
    kinds["sampling"] = modes(build, "512K")["attached"]
    found = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, (prefix, extra) in kinds.items():
            done = run(prefix, [pair, str(count)], extra)
            found[name].append(float(done.stdout))
    return {name: statistics.median(values) for name, values in found.items()}


def programs(build, pair, rounds):
    """CPU time that whole programs say they took, in interleaved runs: {program: {mode: median}}"""
    works = {"churn": [pair, "10000000", "churn"], "python": ["/usr/bin/python3", "-c", PYTHON_WORK]}
    kinds = modes(build, "512K")
    if shutil.which("heaptrack"):
        kinds["heaptrack"] = (["heaptrack", "-o", "heaptrack.out"], {})
    result = {}
    for work, command in works.items():
        found = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, (prefix, extra) in kinds.items():
                said = run(prefix, command, extra).stdout
                found[name].append(max(map(float, re.findall(r"^[\d.]+$", said, re.MULTILINE))))
        result[work] = {name: statistics.median(values) for name, values in found.items()}
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    pair = f"{build}/bench/bench-heap-pair"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        counts = instructions(build, pair)
        times = nanoseconds(build, pair, options.rounds)
        whole = programs(build, pair, options.rounds)
    base = counts["without"]
    print("malloc/free pair of 64 bytes    instructions      ns")
    for name, value in times.items():
        count = counts.get(name)
        shown = f"{count:6.1f} (+{count - base:4.1f})" if count else " " * 15
        print(f"  {name:20} {shown:>24} {value:7.2f} (+{value - times['without']:.2f})")
    print(f"  the reference sampler, idle, published: +{PUBLISHED_IDLE_NS} ns")
    print("whole programs, their own CPU time")
    for work, values in whole.items():
        for name, value in values.items():
            change = 100 * (value / values["without"] - 1)
            print(f"  {work:10} {name:10} {value:8.3f} {change:+6.1f}%")
    idle, attached = (times[name] - times["without"] for name in ("idle", "attached"))
    print(f"bars: idle {idle:.2f} of 2 ns, attached {attached:.2f} of 4 ns")
    sys.exit(idle > 2 or attached > 4)


main()
