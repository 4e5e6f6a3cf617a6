#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""states.py RECORDING.pb.gz <TRUTH: the wall-clock time of threads by state, as recorded with
`--mode wall`, against what subjects/states.c has measured of itself. A thread's states add up to
its life within 1%, and each is right within 2 points."""

import collections
import sys

import recording


def main():
    found = collections.defaultdict(collections.Counter)
    stacks = collections.defaultdict(collections.Counter)
    for sample in recording.read(sys.argv[1]):
        thread, state = sample.labels["comm"], sample.labels["state"]
        found[thread][state] += sample.cpu_ns / 1e9
        for name in {frame.name for frame in sample.frames}:
            stacks[thread, state][name] += sample.cpu_ns / 1e9
    wrong = 0

    def expect(what, value, low, high):
        nonlocal wrong
        off = not low <= value <= high
        wrong += off
        print(f"{what}: {value:.3f} s, expected {low:.3f} to {high:.3f}{' WRONG' if off else ''}")

    life = 0.0
    for line in sys.stdin:
        name, state, wall, cpu, waited = line.split()
        wall, cpu, waited = float(wall), float(cpu), float(waited)
        life = max(life, wall)
        slack, states = wall * 0.02, found[name]
        expect(f"{name} in all", sum(states.values()), wall * 0.99, wall * 1.01)
        expect(f"{name} running", states["running"], cpu - slack, cpu + slack)
        # The program can't tell the end of its wait from the moment it got a CPU again.
        low = waited - states["runnable"] - slack
        expect(f"{name} {state}", states[state], low, wall - cpu + slack)
    parked = sum(found["parked"].values())
    # It ends with the process, once it gets a CPU for that.
    process = sum(found["states"].values())
    expect("parked in all", parked, life * 0.98, process * 1.01 + found["parked"]["runnable"])
    # All but what it took to get there.
    low = parked - found["parked"]["runnable"] - found["parked"]["running"] - life * 0.02
    expect("parked sleep", found["parked"]["sleep"], low, process * 1.01)
    expect("the lock that waiter waits for, in waiter()", stacks["waiter", "lock"]["waiter"],
           found["waiter"]["lock"] * 0.98, found["waiter"]["lock"] * 1.001)  # fmt: skip
    sys.exit(1 if wrong else 0)


main()
