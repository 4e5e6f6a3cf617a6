#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py PROFILE < TRUTH: whether a heap profile agrees with what the program says it did.
TRUTH has lines "SITE ALLOCATED LIVE OBJECTS LIVE_OBJECTS" (see known.c). A sum of Poisson samples
with mean interval T over N bytes of allocations of size S has the variance N * S / (exp(S/T) - 1).
Values must be within so many of its standard deviations that all of them together are as likely to
be as one is to be within three, and so must the sum of their squares. $MEAN is T, or what it grew to
at most; $VALUES is how many values are compared in all runs of a test (1: these)."""

import json
import math
import os
import statistics
import subprocess
import sys

MEAN = int(os.environ.get("MEAN", 524288))
# How likely a value beyond three deviations is, shared by all of them.
CHANCE = (1 - math.erf(3 / math.sqrt(2))) / int(os.environ.get("VALUES", 1))
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


def beyond(chance):
    """How many standard deviations a value exceeds with this chance."""
    return statistics.NormalDist().inv_cdf(1 - chance)


def largest_sum(freedom):
    """Of squares that are independent: what their sum exceeds with that chance, by Wilson and
    Hilferty."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + beyond(CHANCE) * math.sqrt(part)) ** 3


def main():
    profile = sys.argv[1]
    limit = beyond(CHANCE / 2)
    values = {name: found(profile, name) for name in TYPES}
    wrong, squares = 0, []
    for line in sys.stdin:
        site, *numbers = line.split()
        bytes_, live, objects, live_objects = map(int, numbers)
        truths = dict(zip(TYPES, (bytes_, live, objects, live_objects)))
        for name, truth in truths.items():
            space = bytes_ if name.startswith("alloc") else live
            count = objects if name.startswith("alloc") else live_objects
            allowed = limit * deviation(space, count, MEAN)
            if name.endswith("objects") and count:
                allowed *= 2 * count / space # a mix of sizes varies more than equal ones
            allowed += 2 + truth * ROUNDING
            value = values[name].get(site, 0)
            verdict = "ok" if abs(value - truth) <= allowed else "WRONG"
            wrong += verdict == "WRONG"
            squares.append((limit * (value - truth) / allowed) ** 2)
            print(f"{verdict:5} {site:12} {name:13} {value:>12} of {truth:>12}, +-{allowed:.0f}")
    # The four types of a site are of the same samples: as if there were one.
    total, most = sum(squares) / len(TYPES), largest_sum(len(squares) / len(TYPES))
    print(f"{math.sqrt(sum(squares) / len(squares)):.2f} standard deviations on average; "
          f"sum of squares {total:.1f}, at most {most:.1f}")
    sys.exit(wrong > 0 or total > most)


main()
