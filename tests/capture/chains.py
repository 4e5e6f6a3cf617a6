#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chains.py RECORDING.pb.gz PROGRAM [option...] <EXPECTED: every stack of a recording must be one that
the program can have, and the expected ones must be there, whole.

A line of EXPECTED is a name, the least number of samples, and a chain of calls from `main` or a
thread's function to the leaf, divided by spaces. With a + behind the number it doesn't matter how many
samples don't reach the leaf.

    NAME        a function of PROGRAM, or of another binary as NAME@BINARY; regular expressions
    NAME{N}     N calls of it in a row; {+} at least one, {*} any number
    @BINARY     calls within another binary (a regular expression), at least one
    ...         at the end: whatever the leaf calls in other binaries, and its stubs for that

What comes before the chain is the C library's: _start and its helpers, or the start of a thread. A
sample may end anywhere along a chain, since calls take time too, but nearly all of those that are far
enough to be nobody else's must reach the leaf. `also CHAIN` allows a chain without asking for it.
Lines that begin with # are comments."""

import argparse
import collections
import re
import sys

import recording

LEAF_PERCENT = 90
SHOWN = 5
OUTER = (
    r"(?:\n[^\n]+@(?:libc[.-][^\n]*|libpthread[^\n]*|ld-[^\n]*)"
    r"|\n(?:__libc_start\w*|__clone3?|clone3?|start_thread|_start)@[^\n]*)*"
)


def stack_text(frames):
    return "".join(f"\n{frame.name}@{frame.binary}" for frame in frames)


def show(frames):
    """As chains are written, with the middle of what is long left out."""
    names = [
        frame.name if "+0x" in frame.name else f"{frame.name}@{frame.binary}" for frame in frames
    ]
    if len(names) > 24:
        names[12:-12] = [f"({len(names) - 24} more)"]
    return " > ".join(name if len(name) <= 100 else f"{name[:60]}...{name[-30:]}" for name in names)


class Chain:
    """Regular expressions for stacks as stack_text gives them."""

    def __init__(self, line, program):
        words = line.split()
        self.name, self.least = words[0], 0
        self.leaf_percent = LEAF_PERCENT
        if self.name != "also":
            self.least = int(words[1].rstrip("+"))
            self.leaf_percent = 0 if words[1].endswith("+") else LEAF_PERCENT
            words = words[1:]
        self.line = " ".join(words[1:])
        self.program = re.escape(program)
        self.more = words[-1] == "..."
        self.items = [self.item(word) for word in words[1:] if word != "..."]
        outer = r"\n_start@[^\n]*" + OUTER if words[1] == "main" else OUTER
        self.whole = re.compile(outer + "".join(map(repeat, self.items)) + self.tail())
        self.part = re.compile(outer + self.begin(self.items))
        # Stacks that have lost what is outermost, and begin anywhere along the chain or among the C
        # library's frames before it.
        self.end = re.compile(OUTER + "(?:" + "|".join(
            rf"(?:{one}){{1,{count if count.isdigit() else ''}}}{self.begin(self.items[i + 1:])}"
            for i, (one, count) in enumerate(self.items)
        ) + ")")  # fmt: skip
        self.own = ""
        self.reached = collections.Counter()

    def tail(self):
        if not self.more:
            return ""
        others = rf"(?:\n[^\n]+@(?!{self.program}(?:\n|$))[^\n]*)*"
        return rf"(?:\n{self.program}\+0x\w+@{self.program})?{others}"

    def item(self, word):
        """The expression of one frame, and how many in a row."""
        count = "1"
        if match := re.fullmatch(r"(.*)\{(\d+|[+*])\}", word):
            word, count = match[1], match[2]
        name, at, binary = word.partition("@")
        if not name:
            return rf"(?:\n[^\n]+@{binary}(?=\n|$))+", count
        return rf"\n(?:{name})@(?:{binary if at else self.program})(?=\n|$)", count

    def begin(self, items):
        """Any beginning of the items, the empty one too."""
        found = self.tail()
        for one, count in reversed(items):
            less = rf"|(?:{one}){{1,{int(count) - 1}}}" if count.isdigit() and count != "1" else ""
            found = rf"(?:{repeat((one, count))}{found}{less})?"
        return found

    def take(self, stack, count, truncated):
        if truncated:
            if not self.end.fullmatch(stack):
                return False
            leaf = re.search(rf"{self.items[-1][0]}{self.tail()}$", stack)
            self.reached["whole" if leaf else "part"] += count
            return True
        if self.whole.fullmatch(stack):
            self.reached["whole"] += count
        elif not self.part.fullmatch(stack):
            return False
        elif re.search(self.own, stack):
            self.reached["part"] += count
        return True

    def complaint(self):
        whole, part = self.reached["whole"], self.reached["part"]
        if whole < self.least:
            return (
                f"{self.name}: {whole} samples have the whole chain where at least {self.least}"
                f" were expected, and {part} have its beginning: {self.line}"
            )
        if self.least and whole * 100 < self.leaf_percent * (whole + part):
            return f"{self.name}: only {whole} of {whole + part} samples reach the leaf: {self.line}"
        return None


def repeat(item):
    one, count = item
    return rf"(?:{one}){{{count}}}" if count.isdigit() else rf"(?:{one}){count}"


def own_frames(frames, program, own):
    """In a static program all functions that are not its own are the C library's."""
    if not own:
        return frames
    return [
        frame._replace(binary="libc.static")
        if frame.binary == program and frame.name not in own
        else frame
        for frame in frames
    ]


def without_lookup(frames):
    for at, frame in enumerate(frames):
        if frame.name.startswith("_dl_runtime_resolve") and frame.binary.startswith("ld-"):
            return frames[:at]
    return frames


def find_own(chains):
    """What no other chain begins with: a sample that has come so far is this chain's."""
    for chain in chains:
        texts = [item[0] for item in chain.items]
        length = 1
        while length < len(texts) and any(
            [item[0] for item in other.items[:length]] == texts[:length]
            for other in chains if other is not chain
        ):  # fmt: skip
            length += 1
        chain.own = "".join(texts[:length])


CUT_AT_START = 2
BEFORE_AND_AFTER = (
    "_start", "_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones",
    "__do_global_dtors_aux", "_dl_relocate_static_pie",
)  # fmt: skip


def is_outside(frames, program):
    """Before and after main: the loader, constructors."""
    return all(frame.binary != program or frame.name in BEFORE_AND_AFTER for frame in frames)


def check(options, samples, lines):
    chains = [Chain(line, options.program) for line in lines]
    find_own(chains)
    total, cut, impossible = 0, collections.Counter(), collections.Counter()
    for sample in samples:
        frames = own_frames(sample.frames, options.program, options.own)
        if not frames or not re.fullmatch(options.comm, str(sample.labels.get("comm"))):
            continue
        total += sample.count
        truncated = False
        if recording.is_cut(sample):
            if recording.is_between_programs(sample):
                continue
            truncated = options.truncated and frames[0].name == "[truncated]"
            if not truncated:
                cut[show(frames)] += sample.count
                continue
            frames = frames[1:]
        taken = [chain.take(stack_text(frames), sample.count, truncated) for chain in chains]
        # The first call of any function in a library looks it up.
        called = without_lookup(frames)
        if not any(taken) and called != frames:
            taken = [chain.take(stack_text(called), sample.count, truncated) for chain in chains]
        if not any(taken) and not is_outside(frames, options.program):
            impossible[show(frames)] += sample.count
    complaints = [
        f"{count} samples have a stack that cannot be: {stack}"
        for stack, count in impossible.most_common(SHOWN)
    ]
    if len(impossible) > SHOWN:
        complaints.append(f"... and {len(impossible) - SHOWN} other stacks that cannot be")
    cut_percent = 100 * sum(cut.values()) / max(total, 1)
    # The first stacks of a process may lie in pages that are not there yet.
    if cut_percent > options.cut_percent and sum(cut.values()) > CUT_AT_START:
        complaints.append(f"{cut_percent:.2f}% of {total} stacks are cut, such as")
        complaints += [f"    {count}: {stack}" for stack, count in cut.most_common(SHOWN)]
    complaints += filter(None, (chain.complaint() for chain in chains))
    reached = [f"{chain.name} {chain.reached['whole']}" for chain in chains if chain.name != "also"]
    print(f"{options.program}: {total} samples, {100 - cut_percent:.2f}% whole; {', '.join(reached)}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description="EXPECTED is described at the top of this file.")
    parser.add_argument("recording")
    parser.add_argument("program", help="the binary that names without @ belong to")
    parser.add_argument("--comm", default=".*", help="only threads that are called so")
    parser.add_argument("--cut-percent", type=float, default=1, help="how many may be cut (1)")
    parser.add_argument("--own", help="a file with the program's functions: others are libc's")
    parser.add_argument("--truncated", action="store_true",
                        help="[truncated] may be in place of what is outermost")  # fmt: skip
    options = parser.parse_args()
    if options.own:
        with open(options.own, encoding="utf-8") as names:
            options.own = set(names.read().split())
    lines = [line.strip() for line in sys.stdin]
    lines = [line for line in lines if line and not line.startswith("#")]
    complaints = check(options, recording.read(options.recording), lines)
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
