#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cgroup_states.py RECORDING.pb.gz SECONDS: in a recording of a cgroup with one run of
subjects/states.c, each of its threads is there for so long, and no other process is."""

import collections
import sys

import recording

THREADS = ("sleeper", "worker", "holder", "waiter", "syncer", "reader", "writer", "receiver", "sender",
           "parked", "states")


def main():
    lives, processes = collections.Counter(), set()
    for sample in recording.read(sys.argv[1]):
        lives[sample.labels["comm"]] += sample.cpu_ns / 1e9
        processes.add(sample.labels["pid"])
    length = float(sys.argv[2])
    wrong = len(processes) != 1
    print(f"processes: {len(processes)}, expected 1")
    for name in THREADS:
        off = not length * 0.97 <= lives[name] <= length * 1.05
        wrong |= off
        print(f"{name}: {lives[name]:.3f} s of {length} s{' WRONG' if off else ''}")
    sys.exit(1 if wrong else 0)


main()
