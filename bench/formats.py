#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records one program with each tool, and compares what it costs to report on the file: `assay report`
beside the tool's own reader, in turns, by CPU time; and assay's memory beside the file's size. Tools
that are not here are left out."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

LOAD = """
import json, re, cProfile
def make(n): return {"k%d" % i: [make(n - 1)] if n and i == 0 else "v" * (i % 7) for i in range(12)}
def walk(x): return sum(map(walk, x)) if isinstance(x, list) else sum(map(walk, x.values())) if isinstance(x, dict) else len(x)
def turn(n):
    text = json.dumps([make(n % 5) for _ in range(20)])
    return walk(json.loads(text)) + len(re.findall("v+", text)) + len(sorted(text))
def main(turns): return sum(turn(i) for i in range(turns))
"""

RUBY = """
require 'stackprof'
def make(n, i) = n.zero? ? 'v' * i : { "k#{i}" => [make(n - 1, i)], 'n' => i }
def walk(x) = x.is_a?(Hash) ? x.sum { |_, v| walk(v) } : x.is_a?(Array) ? x.sum { |v| walk(v) } : x.to_s.size
StackProf.run(mode: :cpu, interval: 200, raw: true, out: ARGV[0]) { 30_000.times { |i| walk(make(i % 30, i % 12)) } }
"""


def record(folder):
    """(name, file, the owner's command on it) for each tool that is here."""
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    with open(f"{folder}/load.py", "w") as out:
        out.write(LOAD)

    def run(*command, turns, path):
        command = [*command, python, "-c", f"import load; load.main({turns})"]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Under Valgrind a probe that somebody has put into a library ends the program; what was
        # measured until then is there.
        return os.path.exists(path) and os.path.getsize(path) > 0

    found = []
    has = shutil.which
    if has("perf"):
        for name, graph, turns in ("perf.data", "fp", 9000), ("perf.data, copies", "dwarf,8192", 60):
            path = f"{folder}/{graph[:2]}.data"
            if run("perf", "record", "-q", "-e", "cpu-clock", "-F", "9973", "--call-graph", graph,
                   "-o", path, turns=turns, path=path):
                found.append((name, path, ["perf", "script", "-i", path]))
    if has("valgrind"):
        path = f"{folder}/callgrind.out"
        if has("callgrind_annotate") and run("valgrind", "--tool=callgrind", f"--callgrind-out-file={path}",
                                               turns=3, path=path):
            found.append(("callgrind", path, ["callgrind_annotate", path]))
        path = f"{folder}/massif.out"
        if has("ms_print") and run("valgrind", "--tool=massif", f"--massif-out-file={path}", "--max-snapshots=400",
                                   "--detailed-freq=1", turns=2, path=path):
            found.append(("massif", path, ["ms_print", path]))
    if has("heaptrack") and has("heaptrack_print"):
        run("heaptrack", "-o", f"{folder}/heaptrack.data", turns=40, path=folder)
        for name in os.listdir(folder):
            if name.startswith("heaptrack.data"):
                path = f"{folder}/{name}"
                found.append(("heaptrack", path, ["heaptrack_print", "-f", path]))
    path = f"{folder}/load.pstats"
    program = f"import cProfile, load; cProfile.run('load.main(20)', {path!r})"
    if subprocess.run([python, "-c", program], cwd=folder, stdout=subprocess.DEVNULL).returncode == 0:
        show = f"import pstats; pstats.Stats({path!r}).sort_stats('tottime').print_stats(20)"
        found.append(("pstats", path, [python, "-c", show]))
    if has("ruby") and has("stackprof"):
        path = f"{folder}/stackprof.dump"
        if subprocess.run(["ruby", "-e", RUBY, path], cwd=folder, stderr=subprocess.DEVNULL).returncode == 0:
            with open(f"{path}.json", "wb") as out:
                subprocess.run(["stackprof", "--json", path], stdout=out, check=True)
            found.append(("stackprof", f"{path}.json", ["stackprof", "--text", path]))
    if has("austin") and has("austin2speedscope"):
        path = f"{folder}/load.austin"
        if run("austin", "-i", "500us", "-o", path, turns=60, path=path):
            found.append(("austin", path, ["austin2speedscope", path, f"{path}.json"]))
    return found


def measure(command):
    """CPU seconds and peak KiB; None when it failed."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "PAGER": "cat"})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss) if child.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", help="where the files are, or will be kept")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(options.folder or scratch)
        os.makedirs(folder, exist_ok=True)
        print(f"load {os.getloadavg()[0]:.0f}; CPU seconds, the best of {options.runs} in turns")
        print(f"{'':26} {'file':>9} {'assay':>8} {'owner':>8} {'ratio':>7} {'assay peak':>11}")
        for name, path, owner in record(folder):
            mine, theirs = [], []
            for _ in range(options.runs):
                mine.append(measure([options.assay, "report", path]))
                theirs.append(measure(owner))
            if None in mine or None in theirs:
                print(f"MISSED {name}: {'assay' if None in mine else owner[0]} failed")
                missed += 1
                continue
            cpu, peak = min(one[0] for one in mine), max(one[1] for one in mine)
            other = min(one[0] for one in theirs)
            held = cpu <= other
            missed += not held
            print(f"{'held' if held else 'MISSED'} {name:{19 if held else 17}} "
                  f"{os.path.getsize(path) >> 10:>7} K {cpu:>8.3f} {other:>8.3f} "
                  f"{other / cpu:>6.1f}x {peak >> 10:>9} M  {owner[0]}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
