#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shares.py RECORDING.pb.gz POINTS <TRUTH: shares of CPU time as recorded against what a program has
measured of itself. TRUTH has a function and its nanoseconds on each line; a function's time is that
of all stacks which it is in. With --total only the sum of all time is compared, within POINTS percent."""

import argparse
import sys

import recording


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("points", type=float)
    parser.add_argument("--total", action="store_true")
    options = parser.parse_args()
    truth = {name: int(value) for name, value in (line.split() for line in sys.stdin)}
    samples = recording.read(options.recording)
    found = dict.fromkeys(truth, 0)
    for sample in samples:
        for name in {frame.name for frame in sample.frames} & set(truth):
            found[name] += sample.cpu_ns
    wrong = 0
    truth_total, total = sum(truth.values()), sum(found.values())
    if options.total:
        total = sum(sample.cpu_ns for sample in samples)
        percent = 100 * total / truth_total
        print(f"{total / 1e9:.2f} s of {truth_total / 1e9:.2f} s of CPU time, {percent:.1f}%")
        sys.exit(abs(percent - 100) > options.points)
    for name, ns in truth.items():
        share, expected = 100 * found[name] / max(total, 1), 100 * ns / truth_total
        print(f"{name}: {share:.2f}% recorded, {expected:.2f}% by its own clock")
        wrong += abs(share - expected) > options.points
    if wrong:
        print(f"{wrong} of them are more than {options.points} points off.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
