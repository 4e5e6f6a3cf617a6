#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""no_tables.py RECORDING.pb.gz SAID [stripped]: nearly all stacks of the program are complete, by what the file has
and by what the recorder says; the complete ones begin where a thread does; and what was called is called
by who called it."""

import collections
import re
import sys

import recording

STARTS = ("_start", "__clone", "__clone3", "clone", "clone3")
# clone3 is a local symbol: without its debug package, libc has no name for it.
NAMELESS = "libc.so.6+0x"
# Where a stripped program itself begins: once for the process, once for its threads.
STRIPPED = "program+0x"
CALLERS = {"turn": "assembly", "assembly": "work", "copy": "work", "print": "work"}


def main():
    path, said = sys.argv[1:3]
    stripped = sys.argv[3:] == ["stripped"]
    if stripped:
        del CALLERS["turn"]
    samples = [s for s in recording.read(path) if s.labels["comm"] == "program" and s.frames]
    total = sum(s.count for s in samples)
    whole = [s for s in samples if not recording.is_cut(s)]
    complete = 100 * sum(s.count for s in whole) / total
    roots, wrong, seen = collections.Counter(), 0, collections.Counter()
    for sample in whole:
        roots[sample.frames[0].name] += sample.count
        names = [frame.name for frame in sample.frames]
        for caller, name in zip(names, names[1:]):
            seen[name] += sample.count
            wrong += CALLERS.get(name, caller) != caller
    print(f"{total} samples, {complete:.2f}% complete, roots {dict(roots)}, {wrong} wrong callers")
    claimed = float(re.search(r"([0-9.]+)% of stacks complete", open(said).read()).group(1))
    nameless = [root for root in roots if root.startswith(STRIPPED)] if stripped else []
    bad = [
        len(nameless) > 2,
        complete < 99,
        abs(claimed - complete) > 1,
        # The dynamic loader starts the program, too.
        any(root not in STARTS and root not in nameless and not root.startswith(("_dl_", NAMELESS)) for root in roots),
        wrong > 0,
        any(seen[name] < total / 100 for name in CALLERS),
    ]
    sys.exit(any(bad))


if __name__ == "__main__":
    main()
