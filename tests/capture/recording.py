# SPDX-License-Identifier: Apache-2.0
"""Reads the pprof files that `assay record` writes, by a reader that shares nothing with assay's own:
the samples with their whole stacks, the binary of each frame, and the labels."""

import collections
import gzip
import os

KERNEL = "[kernel.kallsyms]"
CUT = ("[unknown]", "[truncated]")

Frame = collections.namedtuple("Frame", "name binary")  # binary: last part of its path, "" for none
Sample = collections.namedtuple("Sample", "frames kernel labels count cpu_ns")  # outermost first


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message; the value is an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = data[at : at + 8], at + 8
        elif key & 7 == 2:
            length, at = varint(data, at)
            value = data[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7} in a profile")
        yield key >> 3, value


def numbers(value):
    """A repeated number: packed or one of several."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def message(data):
    """Field number to the list of its values."""
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def one(found, number, default=0):
    return found[number][-1] if number in found else default


def read(path, kind=None):
    """The samples of a recording, without what is inlined: functions that have code of their own.
    `cpu_ns` is the value of the type called `kind`, or else the last."""
    top = message(gzip.open(path).read())
    strings = [text.decode("utf-8", "backslashreplace") for text in top[6]]
    kinds = [strings[one(message(data), 1)] for data in top[1]]
    column = kinds.index(kind) if kind else -1
    binaries, names, locations = {0: ""}, {}, {}
    for data in top[3]:
        entry = message(data)
        binaries[one(entry, 1)] = os.path.basename(strings[one(entry, 5)])
    for data in top[5]:
        entry = message(data)
        names[one(entry, 1)] = strings[one(entry, 2)]
    for data in top[4]:
        entry = message(data)
        binary = binaries[one(entry, 2)]
        # Innermost first: the last one is what the others are inlined into.
        lines = [names[one(message(line), 1)] for line in entry[4][-1:]]
        locations[one(entry, 1)] = Frame(*lines or [f"{binary}+{one(entry, 3):#x}"], binary)
    samples = []
    for data in top[2]:
        entry = message(data)
        frames = [locations[n] for value in entry[1] for n in numbers(value)]
        frames.reverse()
        inside = next((i for i, frame in enumerate(frames) if frame.binary == KERNEL), len(frames))
        user, kernel = frames[:inside], frames[inside:]
        labels = {}
        for label in map(message, entry[3]):
            labels[strings[one(label, 1)]] = strings[one(label, 2)] or one(label, 3)
        values = [n for value in entry[2] for n in numbers(value)]
        samples.append(Sample(user, kernel, labels, values[0], values[column]))
    return samples


def is_cut(sample):
    return bool(sample.frames) and sample.frames[0].name in CUT


def is_between_programs(sample):
    """In the kernel while it puts one program in another's place: the old stack is gone, and the new
    one has not begun."""
    return any("execve" in frame.name for frame in sample.kernel)
