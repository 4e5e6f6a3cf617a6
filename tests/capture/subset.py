#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""subset.py INFO [subset] <TRUTH: totals of `assay info` of a recording of subjects/crowd.c are the
program's own within three standard errors. With `subset`, only a part of it was measured."""
import re
import sys


def main():
    truth = dict(line.split() for line in sys.stdin)
    states = {}
    for name, total, error in re.findall(
            r"wall time: (\S+) ([0-9.]+) s, standard error ([0-9.]+) s", open(sys.argv[1]).read()):
        states[name] = float(total), float(error)
    print(f"{truth} states {states}")
    elapsed, running = float(truth["elapsed"]), float(truth["running"])
    print(f"{float(truth['switches']) / elapsed:.0f} switches a second")
    wrong = []
    for name, total, error, wanted in (
            ("running", *states["running"], running),
            ("all states", sum(state[0] for state in states.values()),
             sum(state[1] for state in states.values()), float(truth["lived"]))):
        off = abs(total - wanted)
        print(f"{name}: {total:.3f} s +- {error:.3f}, the program says {wanted:.3f}")
        if off > 3 * error + 0.02 * wanted:
            wrong.append(name)
    if len(sys.argv) > 2 and not any(error > 0.001 * total for total, error in states.values() if total > 1):
        wrong.append("everything was measured")
    if wrong:
        sys.exit("wrong: " + ", ".join(wrong))


main()
