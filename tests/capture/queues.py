#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""queues.py RECORDING.pb.gz <TRUTH: the wall-clock time of threads that wait for a CPU alone, against
what subjects/queues.c has measured of itself. The states of each add up to its life within 1%, and
each is right within 2 points of it; N threads of one CPU wait for it (N - 1) / N of their time."""

import collections
import sys

import recording


def main():
    # Threads of one name are told apart by their numbers, in the order of their creation.
    threads = collections.defaultdict(collections.Counter)
    for sample in recording.read(sys.argv[1]):
        if sample.labels["comm"] in ("mover", "napper", "spinner"):
            threads[sample.labels["comm"], sample.labels["tid"]][sample.labels["state"]] += (
                sample.cpu_ns / 1e9)
    truth = [(name, *map(float, values)) for name, *values in map(str.split, sys.stdin)]
    wrong = 0

    def expect(what, value, low, high):
        nonlocal wrong
        off = not low <= value <= high
        wrong += off
        print(f"{what}: {value:.3f}, expected {low:.3f} to {high:.3f}{' WRONG' if off else ''}")

    for name in sorted({line[0] for line in truth}):
        found = sorted((states for (comm, _), states in threads.items() if comm == name),
                       key=lambda states: states["running"])
        lines = sorted((line for line in truth if line[0] == name), key=lambda line: line[2])
        expect(f"threads {name}", len(found), len(lines), len(lines))
        for states, (_, wall, cpu, moves) in zip(found, lines):
            slack = 0.02 * wall
            print(f"{name}: {wall:.3f} s, {cpu:.3f} s of it running, {moves / wall:.0f} moves a second")
            expect(f"{name} in all", sum(states.values()), 0.99 * wall, 1.01 * wall)
            expect(f"{name} running", states["running"], cpu - slack, cpu + slack)
            rest = wall - cpu - states["sleep"]
            expect(f"{name} runnable", states["runnable"], rest - slack, rest + slack)
            if name != "napper":
                expect(f"{name} anything else", rest - states["runnable"], -slack, slack)
        if name != "spinner":
            continue
        lived = sum(line[1] for line in lines)
        share = sum(states["runnable"] for states in found) / lived
        least = 1 - 1 / len(lines)
        # Other processes may take more of the CPU, which the threads' own clocks show.
        others = max(least, 1 - sum(line[2] for line in lines) / lived)
        expect(f"share of {len(lines)} threads of a CPU that wait", share, least - 0.02, others + 0.02)
    sys.exit(1 if wrong else 0)


main()
