#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""storm.py RECORDING.pb.gz PARENT CHILD: no stack may have functions of two programs that are never in
one process at once, and at least 95% of the stacks must be whole."""

import collections
import sys

import recording

WHOLE_PERCENT = 95


def main():
    path, parent, child = sys.argv[1:]
    counts, wrong, cut = collections.Counter(), collections.Counter(), collections.Counter()
    for sample in recording.read(path):
        binaries = {frame.binary for frame in sample.frames}
        text = " > ".join(f"{frame.name}@{frame.binary}" for frame in sample.frames)
        counts["stacks"] += sample.count if sample.frames else 0
        counts[parent] += sample.count if parent in binaries else 0
        counts[child] += sample.count if child in binaries else 0
        if {parent, child} <= binaries:
            wrong[text] += sample.count
        if recording.is_cut(sample) and not recording.is_between_programs(sample):
            kernel = [frame.name for frame in sample.kernel[3:6]]
            cut[" > ".join([text] + kernel)] += sample.count
    whole = 100 - 100 * sum(cut.values()) / max(counts["stacks"], 1)
    print(f"{counts['stacks']} stacks, {counts[parent]} of {parent}, {counts[child]} of {child},"
          f" {whole:.2f}% whole")  # fmt: skip
    for text, count in cut.most_common(5):
        print(f"    cut {count}: {text[:300]}")
    for text, count in wrong.most_common(5):
        print(f"{count} stacks cannot be: {text}")
    sys.exit(1 if wrong or whole < WHOLE_PERCENT else 0)


if __name__ == "__main__":
    main()
