#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_perf.py RECORDING.pb.gz PERF-SCRIPT.txt: assay and perf on two runs of one program. The
functions with the most time by either must have the same share within what chance allows: four
standard errors of the difference, and one point. By themselves, and with what they call."""

import collections
import math
import re
import sys

import recording

TOP = 20
SIGMAS, POINTS = 4, 1
# What has no name, and the outermost frames, which perf doesn't reach every time.
PYTHON = r"\.py:|^<frozen "
LEFT_OUT = r"^\[unknown\]$|\+0x|^start$|^libc_start_"


def canonical(name):
    """One of the names that the C library gives to one function."""
    return re.sub(r"@.*|_impl$|\.(part|isra|constprop|cold)\..*", "", name).lstrip("_")


def of_assay(path):
    own, with_calls, total = collections.Counter(), collections.Counter(), 0
    for sample in recording.read(path):
        # perf has no frames of Python, and those of its interpreter.
        names = [canonical(f.name) for f in sample.frames if not re.search(PYTHON, f.name)]
        if not names:
            continue
        total += sample.count
        own[names[-1]] += sample.count
        for name in set(names):
            with_calls[name] += sample.count
    return own, with_calls, total


def of_perf(path):
    """Blocks of lines `address name`, innermost first, divided by empty lines."""
    own, with_calls, total = collections.Counter(), collections.Counter(), 0
    with open(path, encoding="utf-8", errors="replace") as text:
        for block in text.read().split("\n\n"):
            lines = [line.split(None, 1) for line in block.splitlines()]
            names = [canonical(line[1].strip()) for line in lines if len(line) == 2]
            if not names:
                continue
            total += 1
            own[names[0]] += 1
            for name in set(names):
                with_calls[name] += 1
    return own, with_calls, total


def compare(title, ours, total, theirs, their_total):
    """Prints the largest difference; returns how many are too large."""
    wrong, worst = 0, (0, "")
    top = [name for name, _ in theirs.most_common(TOP)] + [name for name, _ in ours.most_common(TOP)]
    top = [name for name in dict.fromkeys(top) if not re.search(LEFT_OUT, name)]
    for name in top:
        a, b = ours[name] / total, theirs[name] / their_total
        both = (ours[name] + theirs[name]) / (total + their_total)
        error = math.sqrt(both * (1 - both) * (1 / total + 1 / their_total))
        allowed = SIGMAS * error + POINTS / 100
        if abs(a - b) > allowed:
            print(f"{title} {name}: {100 * a:.2f}% by assay, {100 * b:.2f}% by perf,"
                  f" {100 * allowed:.2f} points allowed")  # fmt: skip
            wrong += 1
        worst = max(worst, (abs(a - b), name))
    print(f"{title}: {len(top)} functions, the largest difference is {100 * worst[0]:.2f} points"
          f" ({worst[1]}); {total} samples by assay, {their_total} by perf")  # fmt: skip
    return wrong


def main():
    own, with_calls, total = of_assay(sys.argv[1])
    their_own, their_with_calls, their_total = of_perf(sys.argv[2])
    if not total or not their_total:
        sys.exit(f"assay has {total} samples and perf {their_total}.")
    wrong = compare("by themselves", own, total, their_own, their_total)
    wrong += compare("with their calls", with_calls, total, their_with_calls, their_total)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
