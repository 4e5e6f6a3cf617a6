#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""starved.py RECORDING.pb.gz BINARY FUNCTION: checks what a recorder that was short of CPU time wrote
about programs that spend all their time in FUNCTION. Whatever it saw has to be right: code of files is
in its file, and what could not be placed is marked. With --complete and --points, so many percent of the
stacks reach the thread's start, and FUNCTION's share is at most so many points short of all."""

import argparse
import sys

import recording


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("binary")
    parser.add_argument("function")
    parser.add_argument("--complete", type=float, default=0)
    parser.add_argument("--points", type=float, default=100)
    parser.add_argument("--least", type=int, default=1, help="samples")
    parser.add_argument("--with-loader", action="store_true", help="stacks may begin in the dynamic loader")
    parser.add_argument("--walked", action="store_true", help="leave out stacks that nobody had the time to walk")
    options = parser.parse_args()
    samples = [s for s in recording.read(options.path) if s.labels["comm"] == options.binary and s.frames]
    total = sum(s.count for s in samples)
    if total < options.least:
        sys.exit(f"There are {total} samples of {options.binary}; {options.least} are needed.")
    wrong = 0
    for sample in samples:
        leaf = sample.frames[-1]
        placed = leaf.binary and not leaf.binary.startswith("[jit")
        if not placed and leaf.name not in ("[unknown]", "[unknown mapping]"):
            wrong += sample.count
            print("not in its file:", " ".join(f"{f.name}@{f.binary}" for f in sample.frames))
    whole = [s for s in samples if not recording.is_cut(s)]
    cut = sum(s.count for s in samples if options.walked and s.frames[0].name == "[truncated]")
    complete = 100 * sum(s.count for s in whole) / max(total - cut, 1)
    inside = sum(s.count for s in samples if any(f.name == options.function for f in s.frames))
    share = 100 * inside / total
    print(f"{total} samples, {complete:.2f}% complete, {share:.2f}% in {options.function}, {wrong} wrong")
    if wrong or complete < options.complete or share < 100 - options.points:
        sys.exit(1)
    # Complete stacks begin where the thread does.
    if not options.with_loader and any(s.frames[0].name != "_start" for s in whole):
        sys.exit("A complete stack doesn't begin with _start.")


if __name__ == "__main__":
    main()
