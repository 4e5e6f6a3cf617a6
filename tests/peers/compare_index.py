#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_index.py ASSAY INDEX PEER-FILE COUNT [ALLOWED]: what a symbol index says about COUNT random
addresses all over the functions of PEER-FILE, against what llvm-symbolizer says, and where the two
differ, addr2line and eu-addr2line: the same chains of inlined functions, files and lines. An answer
is right when one of them gives it; it is explained when it falls under one of the reasons below;
anything else fails. ALLOWED is how many may be explained per 1,000 (default 2)."""

import collections
import json
import os
import random
import subprocess
import sys


def run(*command, text=None):
    """What it prints. A peer that can't read a file says so and is no peer there."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                          errors="replace").stdout


def functions(path):
    """Names by start and size: between functions is padding, which tools give to whom they like."""
    ranges = collections.defaultdict(set)
    for line in run("readelf", "-sW", path).splitlines():
        fields = line.split(None, 7)
        if len(fields) > 7 and fields[3] == "FUNC" and fields[6] not in ("UND", "ABS") and \
                int(fields[2], 0):
            ranges[int(fields[1], 16), int(fields[2], 0)].add(fields[7].split("@")[0].rstrip())
    return ranges


def some_addresses(ranges, count):
    """`count` addresses all over the functions, the same in each run, with their function's names."""
    random.seed(1)
    places = sorted(ranges)
    chosen = random.choices(places, weights=[size for _, size in places], k=count)
    found = {start + random.randrange(size): ranges[start, size] for start, size in chosen}
    return dict(sorted(found.items()))


Frame = collections.namedtuple("Frame", "shown name file line")


def file_of(path):
    return "" if path in ("??", "", None) else os.path.normpath(path)


def our_frames(assay, index, addresses):
    text = "".join(f"{address:x}\n" for address in addresses)
    answers = json.loads(run(assay, "debuginfo", "look-up", "--format", "json", index, text=text))
    return {answer["address"]: [Frame(frame.get("function", "??"),
                                      frame.get("system_name", frame.get("function", "??")),
                                      file_of(frame.get("file")), frame["line"])
                                for frame in answer["frames"]] for answer in answers}


def peer_frames(addresses, *command):
    """Of tools that print as addr2line does: each address before its frames."""
    text = "".join(f"0x{address:x}\n" for address in addresses)
    answers = []
    lines = iter(run(*command, text=text).splitlines())
    for line in lines:
        if line.startswith("0x"):
            answers.append([])
        elif line:
            name = line.split(" inlined at ")[0]
            path, _, number = next(lines).split(" (discriminator")[0].partition(" inlined")[0] \
                .rpartition(":")
            if path.rpartition(":")[2].isdigit():  # eu-addr2line has columns as well
                path, _, number = path.rpartition(":")
            answers[-1].append(Frame(name, name, file_of(path),
                                     int(number) if number.isdigit() else 0))
    return dict(zip(addresses, answers))


PEERS = {
    "llvm-symbolizer": lambda path, addresses: peer_frames(
        addresses, "llvm-symbolizer", "-a", "--no-demangle", "--output-style=GNU", f"--obj={path}"),
    "addr2line": lambda path, addresses: peer_frames(addresses, "addr2line", "-afi", "-e", path),
    "eu-addr2line": lambda path, addresses: peer_frames(
        addresses, "eu-addr2line", "-afi", "-e", path),
}


PLAIN = {}


def plain_names(answers):
    """C++ names without parameters and a compiler's suffixes, as we show them."""
    names = sorted({frame.name.split(".")[0] for frames in answers.values() for frame in frames} -
                   set(PLAIN))
    shown = run("c++filt", "-p", text="".join(name + "\n" for name in names)).splitlines()
    PLAIN.update(zip(names, shown))


def same_name(ours, theirs, names, outermost):
    """Peers have bare names of C++ functions that the linker doesn't know, and other symbols of the
    same function; a linkage name may have a compiler's suffix."""
    plain = theirs.split(".")[0]
    return ours.shown == PLAIN.get(plain) or theirs in (ours.name, ours.shown, "??") or ours.shown.endswith("::" + theirs) or \
        ours.name.split(".")[0] == plain or \
        (outermost and (ours.name in names or ours.name.split(".")[0] in
                        {name.split(".")[0] for name in names}))


def same(ours, theirs, names):
    if len(ours) != len(theirs):
        return False
    for level, (own, other) in enumerate(zip(ours, theirs)):
        if not same_name(own, other.name, names, level == len(ours) - 1):
            return False
        if (own.file, own.line) != (other.file, other.line) and (other.file or other.line):
            return False
    return True


def differing_lines(ours, theirs):
    return [level for level, (own, other) in enumerate(zip(ours, theirs))
            if (own.file, own.line) != (other.file, other.line)]


def reason(ours, answers, names):
    """Why an answer that no peer gives is still right; None when there is no reason."""
    if not ours:
        return None
    for theirs in answers:
        chain = [same_name(own, other.name, names, False) for own, other in zip(ours, theirs)]
        if len(ours) == len(theirs) and all(chain[:-1]):
            wrong = differing_lines(ours, theirs)
            if all(not theirs[level].line for level in wrong):
                return "no peer has a line where there is one"
            if all(theirs[level].line == ours[level].line and
                   os.path.basename(theirs[level].file) == os.path.basename(ours[level].file)
                   for level in wrong):
                return "the same file and line by another path"
        # Go up to 1.20 has no DWARF of what is inlined into wrappers that the compiler made.
        if ours[-1].file == "<autogenerated>" and len(ours) == len(theirs) + 1 and \
                (ours[0].file, ours[0].line) == (theirs[0].file, theirs[0].line):
            return "a method that is inlined into a generated wrapper, which no peer knows"
    # Peers disagree with each other about which of several overlapping ranges counts.
    if len({tuple(frame[1:] for frame in theirs) for theirs in answers}) == len(answers) > 1:
        return "ranges overlap: every tool answers differently"
    return None


def main():
    assay, index, path, count, *more = sys.argv[1:]
    allowed = float(more[0]) if more else 2
    names = some_addresses(functions(path), int(count))
    ours = our_frames(assay, index, names)
    assert len(ours) == len(names)
    left, answers = list(names), collections.defaultdict(list)
    for peer, ask in PEERS.items():
        if not left:
            break
        theirs = ask(path, left)
        plain_names(theirs)
        for address in left:
            answers[address].append(theirs[address])
        left = [address for address in left
                if not same(ours[address], theirs[address], names[address])]
    explained, wrong = collections.Counter(), []
    for address in left:
        why = reason(ours[address], answers[address], names[address])
        if why:
            explained[why] += 1
        else:
            wrong.append(address)
    inlined = sum(len(frames) > 1 for frames in ours.values())
    lines = sum(any(frame.line for frame in frames) for frames in ours.values())
    print(f"{index}: {len(names)} addresses, {lines} with lines, {inlined} in inlined functions, "
          f"{sum(explained.values())} explained, {len(wrong)} wrong")
    for why, number in explained.items():
        print(f"  {number}: {why}")
    for address in wrong[:int(os.environ.get("SHOWN", "5"))]:
        print(f"  {address:x} {names[address]}:\n    ours {ours[address]}")
        for theirs in answers[address]:
            print(f"    peer {theirs}")
    if wrong or sum(explained.values()) * 1000 > allowed * len(names):
        sys.exit(1)


main()
