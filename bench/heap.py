#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libassay_heap.so costs: instructions (callgrind) and nanoseconds of a malloc/free pair of 64
bytes without it, with it and nobody attached, and while `assay record --mode heap` reads it; and
whole programs in interleaved runs, beside heaptrack, memray and jemalloc's own profiler where they
are installed ($MEMRAY_PYTHON is a Python that has memray). See README.md."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

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
    """Of a pair, as the difference of a long and a short run, in each mode. Attached is by the ring:
    the kernel's breakpoints at static probes are none that valgrind can run."""
    result = {}
    for name, (prefix, extra) in modes(build, "64G").items():
        counts = []
        for count in (few, many):
            command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", pair]
            done = run(prefix, command + [str(count)], {**extra, "ASSAY_SAMPLER": "perf"})
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


def reported_seconds(command):
    """Of a program that prints its own CPU time (or that of a pair) as a number."""

    def measure(prefix, extra):
        said = run(prefix, command, extra).stdout
        return max(map(float, re.findall(r"^[\d.]+$", said, re.MULTILINE)))

    return measure


def shell_seconds(command):
    """Of a command, as the shell that runs it says: what records it is not counted."""

    def measure(prefix, extra):
        said = run(prefix, ["bash", "-c", f"{command} >result.out; times"], extra).stdout
        children = re.findall(r"(\d+)m([\d.]+)s", said.splitlines()[-1])
        return sum(60 * int(minutes) + float(seconds) for minutes, seconds in children)

    return measure


def redis_seconds(requests):
    """CPU time of a Redis server for so many requests."""
    cli = ["redis-cli", "-s", "redis.sock"]

    def measure(prefix, extra):
        server = ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""]
        with subprocess.Popen(prefix + server, env={**os.environ, **extra}, stdout=subprocess.DEVNULL) as started:
            while not os.path.exists("redis.sock"):
                if started.poll() is not None:
                    sys.exit("Redis did not start.")
                time.sleep(0.05)
            load = ["redis-benchmark", "-s", "redis.sock", "-q", "-c", "20", "-n", str(requests)]
            run(load, ["-d", "100", "-r", "100000", "-t", "set,get,lpush"], {})
            said = run(cli, ["info", "cpu"], {}).stdout
            subprocess.run(cli + ["shutdown", "nosave"], check=False, capture_output=True)
        return sum(map(float, re.findall(r"^used_cpu_(?:user|sys):([\d.]+)", said, re.MULTILINE)))

    return measure


def jemalloc():
    """The path of its library, where that has a profiler."""
    listing = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"libjemalloc\.so\.2 .*=> (\S+)", listing)
    if not found:
        return None
    environment = {**os.environ, "LD_PRELOAD": found[1], "MALLOC_CONF": "prof:true"}
    said = subprocess.run(["true"], env=environment, check=True, capture_output=True, text=True).stderr
    return None if "Invalid" in said else found[1]


def works(pair):
    """{program: measure(prefix, environment)}"""
    result = {
        "churn": reported_seconds([pair, "10000000", "churn"]),
        "python": reported_seconds(["/usr/bin/python3", "-c", PYTHON_WORK]),
    }
    if shutil.which("jq"):
        with open("large.json", "w", encoding="utf-8") as file:
            json.dump([{f"key{j}": [j] * 10 for j in range(50)} for _ in range(2000)], file)
        result["jq"] = shell_seconds("jq -c 'map(with_entries(.value |= add)) | length' large.json")
    if shutil.which("redis-server"):
        result["redis"] = redis_seconds(100000)
    return result


def peers_of(work, library):
    """{name: (command prefix, environment)} of other tools for a program. jemalloc's profiler is to be
    compared with jemalloc without it."""
    peers = {}
    if shutil.which("heaptrack"):
        peers["heaptrack"] = (["heaptrack", "-o", "heaptrack.out"], {})
    if library:
        own = {} if work == "redis" else {"LD_PRELOAD": library}
        peers["jemalloc"] = ([], own)
        peers["jemalloc, profiling"] = ([], {**own, "MALLOC_CONF": "prof:true,lg_prof_sample:19"})
    memray = os.environ.get("MEMRAY_PYTHON")
    if memray and work == "python":
        peers["memray"] = ([memray, "-m", "memray", "run", "-q", "-f", "-o", "memray.bin", "-c", PYTHON_WORK, "--"], {})
    return peers


def programs(build, pair, rounds):
    """CPU time of whole programs in interleaved runs: {program: {mode: median}}"""
    library, result = jemalloc(), {}
    for work, measure in works(pair).items():
        kinds = modes(build, "512K") | peers_of(work, library)
        found = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, (prefix, extra) in kinds.items():
                found[name].append(measure(prefix, extra))
        result[work] = {name: statistics.median(values) for name, values in found.items()}
    return result


def print_programs(whole):
    print("whole programs, their CPU time")
    for work, values in whole.items():
        for name, value in values.items():
            base = "jemalloc" if name.startswith("jemalloc,") else "without"
            change = 100 * (value / values[base] - 1)
            print(f"  {work:10} {name:20} {value:8.3f} {change:+6.1f}%")


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
    print_programs(whole)
    idle, attached = (times[name] - times["without"] for name in ("idle", "attached"))
    print(f"bars: idle {idle:.2f} of 2 ns, attached {attached:.2f} of 4 ns")
    sys.exit(idle > 2 or attached > 4)


main()
