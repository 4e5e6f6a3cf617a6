#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares stacks: compare_stacks.py STACKS.JSON GDB.TXT MAPS.TXT, what `assay stacks -f json` and
gdb's `thread apply all bt` say of the same stopped threads, with the process's mappings. Every
frame must be at the same place of the same binary, and have the same name or another one of the
same function, as libc has them (pause, __libc_pause)."""

import functools
import json
import os
import re
import subprocess
import sys

FRAME = re.compile(r"#\d+ +(?:0x([0-9a-f]+) in )?(<signal handler called>|[^ ]+)")


def read_gdb(path):
    """Pairs of address (None: a signal's trampoline) and name for each thread, by its LWP."""
    threads, frames = {}, None
    with open(path, encoding="utf-8") as text:
        for line in text:
            if match := re.match(r"Thread \d+ .*LWP (\d+)", line):
                frames = threads.setdefault(int(match[1]), [])
            elif frames is not None and (match := FRAME.match(line)):
                frames.append((int(match[1], 16) if match[1] else None, match[2]))
    return threads


def read_maps(path):
    with open(path, encoding="utf-8") as text:
        for line in text:
            fields = line.split(None, 5)
            start, end = (int(part, 16) for part in fields[0].split("-"))
            if len(fields) == 6 and "x" in fields[1]:
                yield start, end, int(fields[2], 16), fields[5].strip()


def debug_file(path):
    """The binary's separate debug file, whether there is one or not."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)
    name = build_id[1] if build_id else "none"
    return f"/usr/lib/debug/.build-id/{name[:2]}/{name[2:]}.debug"


@functools.cache
def addresses(path):
    """The addresses that each name of a binary has."""
    found = {}
    for option, file in (("-D", path), ("-a", path), ("-a", debug_file(path))):
        result = subprocess.run(
            ["nm", option, file], capture_output=True, text=True, check=False
        )  # fmt: skip
        for line in result.stdout.splitlines():
            if match := re.match(r"([0-9a-f]+) . ([^@]+)", line):
                found.setdefault(match[2], set()).add(match[1])
    return found


def same(ours, theirs, maps):
    address, name = theirs
    if address is None:
        return name == "<signal handler called>" and ours["function"] in (None, "__restore_rt")
    for start, end, offset, path in maps:
        if start <= address < end:
            break
    else:
        return False
    # gdb shows where a call returns to, we the call.
    if os.path.basename(path) != ours["binary"]:
        return False
    if address - start + offset - ours["offset"] not in (0, 1):
        return False
    if name == "??" or name == ours["function"]:
        return True
    known = addresses(path)
    return bool(known.get(name, set()) & known.get(ours["function"], set()))


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        ours = {
            # What is inlined has no frame of its own in gdb without DWARF.
            thread["tid"]: [frame for frame in thread["frames"] if not frame.get("inlined")]
            for thread in json.load(text)["threads"]
        }
    theirs = read_gdb(sys.argv[2])
    maps = list(read_maps(sys.argv[3]))
    failed = ours.keys() != theirs.keys() or len(ours) < 4
    if failed:
        print(f"The threads differ: {sorted(ours)} here, {sorted(theirs)} in gdb.")
    for tid in sorted(ours.keys() & theirs.keys()):
        if len(ours[tid]) != len(theirs[tid]):
            failed = True
            print(f"Thread {tid} has {len(ours[tid])} frames, but {len(theirs[tid])} in gdb:")
            print([frame["function"] for frame in ours[tid]], theirs[tid])
        for number, (frame, peer) in enumerate(zip(ours[tid], theirs[tid])):
            if not same(frame, peer, maps):
                failed = True
                print(f"Frame {number} of thread {tid} is {frame}, but {peer} in gdb.")
    print(f"{sum(map(len, ours.values()))} frames of {len(ours)} threads compared")
    sys.exit(1 if failed else 0)


main()
