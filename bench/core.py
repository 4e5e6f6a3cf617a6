#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures assay against pprof on the data sets that core.sh made, and prints tables.

Both tools run one after the other on the same files in the same run. A ratio compares pprof's best
run with assay's median one. What they print is compared too: a fast wrong answer is no result.
"""

import argparse
import collections
import glob
import os
import platform
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

from pprof_peer import Assay, parse_top  # noqa: E402

SPEED_BAR, MEMORY_BAR = 50, 10
Cost = collections.namedtuple("Cost", "wall cpu mib")
Result = collections.namedtuple("Result", "best median output")


class Bench:
    def __init__(self, options):
        self.options = options
        self.assay = os.path.join(options.build, "assay")
        self.inflate = os.path.join(options.build, "bench", "bench-inflate")
        self.meter = os.path.join(options.build, "bench", "bench-measure")
        self.result = os.path.join(options.build, "bench", "result")
        self.wrong = []

    def data(self, name):
        return os.path.join(self.options.data, name)

    def measure(self, command, runs, discard=False):
        costs, output = [], ""
        for _ in range(runs):
            done = subprocess.run(
                [self.meter, self.result, *command], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if discard else subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"{' '.join(command[:6])} exits with {done.returncode}:\n{done.stderr}")
            with open(self.result, encoding="ascii") as result:
                wall, user, system, kib = result.read().split()
            costs.append(Cost(float(wall), float(user) + float(system), int(kib) / 1024))
            output = done.stdout
        best = min(costs)
        median = Cost(*(statistics.median(column) for column in zip(*costs)))
        return Result(best, median, output)

    def report(self, what, name, pprof_runs):
        path = self.data(name)
        ours = self.measure([self.assay, "report", "--top", "20", path], self.options.runs)
        theirs = self.measure(
            [os.environ["PPROF"], "-symbolize=none", "-top", "-nodecount=20",
             "-unit=nanoseconds", path],
            pprof_runs,
        )  # fmt: skip
        expected = parse_top(theirs.output)
        got = Assay(self.assay).report(path, "cpu/nanoseconds")
        same = got.total == expected.total and all(
            got.rows.get(function) == rows for function, rows in expected.rows.items()
        )
        if not same:
            self.wrong.append(what)
        self.row(what, ours, theirs, same)
        return ours

    def merge(self, what, name):
        files = sorted(glob.glob(os.path.join(self.data(name), "*.pb.gz")))
        out, peer_out = self.data("merged-assay.pb.gz"), self.data("merged-pprof.pb.gz")
        ours = self.measure([self.assay, "merge", *files, "-o", out], self.options.runs)
        theirs = self.measure(
            [os.environ["PPROF"], "-symbolize=none", "-proto", f"-output={peer_out}", *files], 1
        )
        reports = [Assay(self.assay).report(path, "cpu/nanoseconds") for path in (out, peer_out)]
        if reports[0] != reports[1]:
            self.wrong.append(what)
        self.row(what, ours, theirs, reports[0] == reports[1])
        return ours

    def row(self, what, ours, theirs, same):
        speed = theirs.best.wall / ours.median.wall
        cpu = theirs.best.cpu / ours.median.cpu
        memory = theirs.best.mib / ours.median.mib
        held = speed >= SPEED_BAR and memory >= MEMORY_BAR and same
        print(
            f"{what:26} {ours.median.wall:8.3f} {ours.best.wall:8.3f} {theirs.best.wall:8.2f} "
            f"{speed:6.0f}x {ours.median.cpu:8.3f} {theirs.best.cpu:8.2f} {cpu:6.0f}x "
            f"{ours.median.mib:7.1f} {theirs.best.mib:8.1f} {memory:6.1f}x "
            f"{'same' if same else 'DIFFER':>7} {'held' if held else 'MISSED':>7}",
            flush=True,
        )

    def floors(self, measured):
        """What only reading costs, and how many times that the commands take."""
        print(
            f"\nWhere the time goes (seconds of CPU, median of {self.options.runs}):\n"
            f"{'data':26} {'gzip -dc':>9} {'inflate':>9} {'+ numbers':>9} {'command':>9} "
            f"{'x inflate':>10} {'x numbers':>10} {'MB/s raw':>9}"
        )
        for what, paths, ours in measured:
            runs = self.options.runs
            gzip = self.measure(["gzip", "-dc", *paths], runs, discard=True)
            inflate = self.measure([self.inflate, *paths], runs)
            numbers = self.measure([self.inflate, "--numbers", *paths], runs)
            size = int(inflate.output)
            command = ours.median.cpu
            print(
                f"{what:26} {gzip.median.cpu:9.3f} {inflate.median.cpu:9.3f} "
                f"{numbers.median.cpu:9.3f} {command:9.3f} {command / inflate.median.cpu:9.1f}x "
                f"{command / numbers.median.cpu:9.1f}x {size / command / 1e6:9.0f}",
                flush=True,
            )

    def instructions(self, name):
        """Instructions by function: a count, so it means the same on every machine."""
        out = os.path.join(self.options.build, "bench", "callgrind.out")
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", self.assay, "report",
             "--top", "20", self.data(name)],
            check=True, capture_output=True,
        )  # fmt: skip
        text = subprocess.run(
            ["callgrind_annotate", out], check=True, capture_output=True, text=True
        ).stdout
        print(f"\nInstructions of `assay report --top 20 {name}`:")
        lines = [line for line in text.splitlines() if re.match(r"\s*[\d,]+ \(", line)]
        print("\n".join(lines[:25]))


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    go = subprocess.run(["go", "version"], check=True, capture_output=True, text=True).stdout
    load = os.getloadavg()[0]
    print(f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, load {load:.1f}")
    print(go.strip(), "with GOGC", os.environ.get("GOGC", "at its default"))


def facts(bench, names):
    for name in names:
        with open(bench.data(name + ".facts"), encoding="ascii") as text:
            lines = text.read().splitlines()
        files = f"{len(lines)} files, each " if len(lines) > 1 else ""
        print(f"  {name}: {files}{lines[-1].split(': ', 1)[1]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="leave the largest data set out")
    parser.add_argument("--instructions", action="store_true", help="count them with valgrind")
    bench = Bench(parser.parse_args())
    quick = bench.options.quick
    machine()
    facts(bench, ["a.pb.gz", "a-tables-last.pb.gz", *([] if quick else ["b.pb.gz"]), "c"])
    print(
        f"\nBars: {SPEED_BAR}x as fast, 1/{MEMORY_BAR} of the memory. Median of "
        f"{bench.options.runs} runs of assay, best of 1 or 2 of pprof.\n"
        f"{'':26} {'assay s':>8} {'best s':>8} {'pprof s':>8} {'':>7} {'CPU s':>8} {'pprof':>8} "
        f"{'':>7} {'MiB':>7} {'pprof':>8} {'':>7} {'answer':>7} {'bars':>7}"
    )
    measured = []
    sets = [("report a", "a.pb.gz", 2), ("report a, tables last", "a-tables-last.pb.gz", 1)]
    if not quick:
        sets.append(("report b", "b.pb.gz", 1))
    for what, name, runs in sets:
        measured.append((what, [bench.data(name)], bench.report(what, name, runs)))
    ours = bench.merge("merge c (200 files)", "c")
    measured.append(("merge c (200 files)", sorted(glob.glob(bench.data("c/*.pb.gz"))), ours))
    bench.floors(measured)
    if bench.options.instructions:
        bench.instructions("a.pb.gz")
    sys.exit(f"assay and pprof differ on: {', '.join(bench.wrong)}" if bench.wrong else 0)


main()
