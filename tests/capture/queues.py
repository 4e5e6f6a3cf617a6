#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""queues.py RECORDING.pb.gz <TRUTH: the wall-clock time of threads that wait for a CPU alone, against
what subjects/queues.c has measured of itself. The states of each add up to its life within 1%, and
each is right within 2 points of it; N threads of one CPU wait for it (N - 1) / N of their time."""

import collections
import sys

import recording


def main():
    threads = collections.defaultdict(collections.Counter)
    for sample in recording.read(sys.argv[1]):
        threads[sample.labels["comm"]][sample.labels["state"]] += sample.cpu_ns / 1e9
    truth = [(name, *map(float, values)) for name, *values in map(str.split, sys.stdin)]
    wrong = 0

    def expect(what, value, low, high):
        nonlocal wrong
        off = not low <= value <= high
        wrong += off
        print(f"{what}: {value:.3f}, expected {low:.3f} to {high:.3f}{' WRONG' if off else ''}")

    for name, wall, cpu, moves in truth:
        states, slack = threads[name], 0.02 * wall
        print(f"{name}: {wall:.3f} s, {cpu:.3f} s of it running, {moves / wall:.0f} moves a second")
        expect(f"{name} in all", sum(states.values()), 0.99 * wall, 1.01 * wall)
        expect(f"{name} running", states["running"], cpu - slack, cpu + slack)
        rest = wall - cpu - states["sleep"]
        expect(f"{name} runnable", states["runnable"], rest - slack, rest + slack)
        if name != "napper":
            expect(f"{name} sleep", states["sleep"], 0, slack)
    spinners = [line for line in truth if line[0].startswith("spinner")]
    if spinners:
        lived = sum(wall for _, wall, _, _ in spinners)
        share = sum(threads[name]["runnable"] for name, _, _, _ in spinners) / lived
        least = 1 - 1 / len(spinners)
        # Other processes may take more of the CPU, which the threads' own clocks show.
        most = max(least, 1 - sum(cpu for _, _, cpu, _ in spinners) / lived)
        expect(f"share that {len(spinners)} threads of a CPU wait", share, least - 0.02, most + 0.02)
    sys.exit(1 if wrong else 0)


main()
