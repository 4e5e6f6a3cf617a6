#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""goroutines.py RECORDING.pb.gz few|many SECONDS: wall-clock time by goroutine, as recorded with `--mode
goroutine`, against what subjects/goroutines.go does. Each waits for as long as the recording took, within
3%; of 2,003 equal ones, of which some are looked at at once, within 5%."""

import collections
import sys

import recording


def main():
    many, seconds = sys.argv[2] == "many", float(sys.argv[3])
    found = collections.Counter()
    depth = reached = 0
    for sample in recording.read(sys.argv[1]):
        names = [frame.name for frame in sample.frames]
        for name in ("receiver", "locker", "sleeper", "chooser", "reader", "deep"):
            if f"main.{name}" in names:
                found[name, sample.labels["state"], sample.labels["wait_reason"]] += sample.cpu_ns / 1e9
        if "main.deep" in names:
            depth, reached = names.count("main.deep"), "runtime.goexit" in names
    wrong = 0

    def expect(key, count, slack):
        nonlocal wrong
        low, high = count * seconds * (1 - slack), count * seconds * (1 + slack)
        off = not low <= found[key] <= high
        wrong += off
        print(f"{key}: {found[key]:.3f} s, expected {low:.3f} to {high:.3f}{' WRONG' if off else ''}")

    expect(("receiver", "channel", "chan receive"), 2003 if many else 3, 0.05 if many else 0.03)
    if not many:
        semaphore = ("locker", "lock", "semacquire")  # before Go 1.20
        mutex = ("locker", "lock", "sync.Mutex.Lock")
        expect(semaphore if found[semaphore] else mutex, 1, 0.03)
        expect(("sleeper", "sleep", "sleep"), 1, 0.03)
        expect(("chooser", "channel", "select"), 1, 0.03)
        expect(("reader", "network", "IO wait"), 1, 0.03)
        expect(("deep", "channel", "chan receive"), 1, 0.03)
        print(f"deep calls itself {depth} times, and the stack is {'whole' if reached else 'CUT'}")
        wrong += depth != 21 or not reached
    sys.exit(1 if wrong else 0)


main()
