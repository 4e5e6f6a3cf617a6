#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py PROFILE < TRUTH: whether a heap profile agrees with what the program says it did.
TRUTH has lines "SITE ALLOCATED LIVE OBJECTS LIVE_OBJECTS" (see known.c). A sum of Poisson samples
with mean interval T over N bytes of allocations of size S has the variance N * S / (exp(S/T) - 1):
values must be within five of its standard deviations. $MEAN is T, or what it grew to at most."""

import json
import math
import os
import subprocess
import sys

MEAN = int(os.environ.get("MEAN", 524288))
ROUNDING = 1e-6
TYPES = ("alloc_space", "inuse_space", "alloc_objects", "inuse_objects")


def found(profile, sample_type):
    """{function: flat value}"""
    output = subprocess.run(
        [os.environ["ASSAY"], "report", "-n", "0", "-t", sample_type, "-f", "json", profile],
        check=True,
        capture_output=True,
    ).stdout
    rows = json.loads(output)["rows"]
    return {row["function"]: row["flat"] for row in rows}


def deviation(value, count, mean):
    """Of a sum over `count` allocations that add up to `value`, as if all had the same size."""
    if not count:
        return 0
    size = value / count
    ratio = min(size / mean, 700)
    return math.sqrt(value * size / math.expm1(ratio))


def main():
    profile = sys.argv[1]
    values = {name: found(profile, name) for name in TYPES}
    wrong, squares = 0, []
    for line in sys.stdin:
        site, *numbers = line.split()
        bytes_, live, objects, live_objects = map(int, numbers)
        truths = dict(zip(TYPES, (bytes_, live, objects, live_objects)))
        for name, truth in truths.items():
            space = bytes_ if name.startswith("alloc") else live
            count = objects if name.startswith("alloc") else live_objects
            allowed = 5 * deviation(space, count, MEAN)
            if name.endswith("objects") and count:
                allowed *= 2 * count / space # a mix of sizes varies more than equal ones
            allowed += 2 + truth * ROUNDING
            value = values[name].get(site, 0)
            verdict = "ok" if abs(value - truth) <= allowed else "WRONG"
            wrong += verdict == "WRONG"
            squares.append((5 * (value - truth) / allowed) ** 2)
            print(f"{verdict:5} {site:12} {name:13} {value:>12} of {truth:>12}, +-{allowed:.0f}")
    average = math.sqrt(sum(squares) / len(squares))
    print(f"{average:.2f} standard deviations on average")
    sys.exit(wrong > 0)


main()
