#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""real.py RECORDING.pb.gz: how good a recording of a real program is. Prints which share of the user
stacks is whole and which share of their frames has a name, and where walks were cut. Fails below what
--whole and --named ask for; names only count in binaries that --in matches, and stacks that are cut
below a function that --switched matches don't count: their rest is on another stack, which a copy of
the thread's own does not hold."""

import argparse
import collections
import re
import sys

import recording


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("--samples", type=int, default=100, help="the least number of stacks")
    parser.add_argument("--whole", type=float, default=0, metavar="PERCENT")
    parser.add_argument("--named", type=float, default=0, metavar="PERCENT")
    parser.add_argument("--in", dest="binaries", default=".*", metavar="RE")
    parser.add_argument("--switched", default="", metavar="RE")
    options = parser.parse_args()
    stacks = switched = whole = frames = named = 0
    cut, unnamed = collections.Counter(), collections.Counter()
    for sample in recording.read(options.recording):
        if not sample.frames:
            continue
        cut_below = recording.is_cut(sample) and len(sample.frames) > 1 and sample.frames[1].name
        if cut_below and re.fullmatch(options.switched, cut_below):
            switched += sample.count
            continue
        stacks += sample.count
        if recording.is_cut(sample):
            inner = [f"{frame.name}@{frame.binary}" for frame in sample.frames[1:4]]
            cut[" > ".join(sample.frames[:1] and [sample.frames[0].name] + inner)] += sample.count
        else:
            whole += sample.count
        for frame in sample.frames:
            if frame.name not in recording.CUT and re.fullmatch(options.binaries, frame.binary):
                frames += sample.count
                named += sample.count * ("+0x" not in frame.name)
                if "+0x" in frame.name:
                    unnamed[frame.binary] += sample.count
    whole_percent = 100 * whole / max(stacks, 1)
    named_percent = 100 * named / max(frames, 1)
    print(f"{stacks} user stacks, {whole_percent:.2f}% whole; {frames} frames, {named_percent:.2f}%"
          " with a name")  # fmt: skip
    if switched:
        print(f"{switched} more are cut where the program changes its stack")
    for text, count in cut.most_common(8):
        print(f"    cut {count}: {text}")
    for text, count in unnamed.most_common(3):
        print(f"    no name {count}: {text}")
    good = whole_percent >= options.whole and named_percent >= options.named
    if stacks < options.samples:
        print(f"at least {options.samples} stacks were expected")
    sys.exit(0 if good and stacks >= options.samples else 1)


if __name__ == "__main__":
    main()
