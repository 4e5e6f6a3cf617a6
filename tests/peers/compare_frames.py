#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_frames.py DUMP-SYMBOLS FILE [ADDRESSES [PEER-FILE]]: what we say about addresses all over
FILE's functions, against what addr2line says (about PEER-FILE, where FILE is stripped): the same
chains of inlined functions, files and lines. addr2line mistakes some files of DWARF 5, misses what
clang inlined and misnames what Go did: llvm-symbolizer's word is as good."""

import collections
import os
import random
import subprocess
import sys


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True,
                          errors="replace").stdout


def functions(path):
    """Names by start and size: between functions is padding, which tools give to whom they like."""
    ranges = collections.defaultdict(set)
    for line in run("readelf", "-sW", path).splitlines():
        fields = line.split(None, 7)
        if len(fields) > 7 and fields[3] == "FUNC" and fields[6] not in ("UND", "ABS"):
            ranges[int(fields[1], 16), int(fields[2], 0)].add(fields[7].split("@")[0].rstrip())
    return ranges


def some_addresses(ranges, count):
    """`count` addresses all over the functions, the same in each run, with their function's names."""
    random.seed(1)
    places = sorted(ranges)
    chosen = random.choices(places, weights=[size for _, size in places], k=count)
    found = {start + random.randrange(size): ranges[start, size] for start, size in chosen}
    return dict(sorted(found.items()))


def place(text):
    """A file and line as (name, number); addr2line says ? for what it doesn't know."""
    path, _, line = text.split(" (discriminator")[0].rpartition(":")
    return os.path.normpath(path), int(line) if line.isdigit() else 0


def our_frames(program, path, text):
    """One list of (readable name, linkage name, place) per address."""
    answers, frames = [], []
    for line in run(program, "--frames", path, text=text).splitlines():
        if not line:
            answers.append(frames)
            frames = []
            continue
        shown, name, _, where = line.split("\t")
        frames.append((shown, name, place(where)))
    return answers


def peer_frames(*command, text):
    """The same of addr2line and its like. With -a each address comes before its frames."""
    answers = []
    lines = iter(run(*command, text=text).splitlines())
    for line in lines:
        if line.startswith("0x"):
            answers.append([])
        elif line:
            answers[-1].append((line, place(next(lines))))
    return answers


def other_peer_frames(path, addresses):
    """The same of llvm-symbolizer, by address."""
    text = "".join(f"0x{address:x}\n" for address in addresses)
    return dict(zip(addresses, peer_frames("llvm-symbolizer", "-a", "--no-demangle",
                                           "--output-style=GNU", f"--obj={path}", text=text)))


def same_name(ours, theirs):
    """addr2line has bare names of C++ functions that the linker doesn't know, and none of
    assembly's, which have a symbol; a linkage name may have a compiler's suffix."""
    shown, name, _ = ours
    return theirs in (name, shown, "??") or shown.endswith("::" + theirs) or \
        name.split(".")[0] == theirs.split(".")[0]


def difference(ours, peers, names):
    """What is wrong in one address's frames, or None. It is right when it is as one of the peers has
    it: they take different names of one function, and addr2line some wrong files."""
    if not ours:
        known = [frames for frames in peers if frames[0][1][1] or len(frames) > 1]
        return f"nothing instead of {known[0]}" if len(known) == len(peers) else None
    same = [frames for frames in peers if len(frames) == len(ours)]
    if not same:
        return f"{[frame[:1] + frame[2:] for frame in ours]} instead of {peers[0]}"
    for level, frame in enumerate(ours):
        outermost = level == len(ours) - 1
        if not any(same_name(frame, frames[level][0]) for frames in same) and \
                not (outermost and frame[1] in names):
            return f"{frame[:2]} instead of {[frames[level][0] for frames in same]}"
        places = [frames[level][1] for frames in same]
        if frame[2] not in places and all(line for _, line in places):
            return f"{frame[0]} at {frame[2]} instead of {places}"
    return None


def main():
    program, path, *more = sys.argv[1:]
    count = int(more[0]) if more else 5000
    peer = more[1] if len(more) > 1 else path
    names = some_addresses(functions(peer), count)
    text = "".join(f"{address:x}\n" for address in names)
    ours = dict(zip(names, our_frames(program, path, text)))
    theirs = dict(zip(names, peer_frames("addr2line", "-afi", "-e", peer, text=text)))
    assert len(ours) == len(theirs) == len(names)
    differ = [address for address in names
              if difference(ours[address], [theirs[address]], names[address])]
    others = other_peer_frames(peer, differ)
    wrong = {}
    for address in differ:
        text = difference(ours[address], [theirs[address], others[address]], names[address])
        if text:
            wrong[address] = text
    inlined = sum(len(frames) > 1 for frames in ours.values())
    lines = sum(any(frame[2][1] for frame in frames) for frames in ours.values())
    print(f"{path}: {len(names)} addresses, {lines} with lines, {inlined} in inlined functions, "
          f"{len(differ)} not as addr2line has them, {len(wrong)} wrong")
    for address, text in list(wrong.items())[:10]:
        print(f"  {address:x}: {text}"[:400])
    # Where the compiler's ranges overlap, each tool takes another.
    if not lines or len(wrong) > len(names) // 500:
        sys.exit(1)


main()
