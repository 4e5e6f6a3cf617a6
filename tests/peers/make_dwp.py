#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_dwp.py PACKAGE DWO...: a package (.dwp) of DWARF 5 units that a compiler split off, one in
each file, as section 7.3.5 of the standard describes it. For compilers whose output the packagers at
hand can't read."""

import struct
import sys

# The columns of an index, by the sections that each unit has a part of.
COLUMNS = {".debug_info.dwo": 1, ".debug_abbrev.dwo": 3, ".debug_line.dwo": 4,
           ".debug_loclists.dwo": 5, ".debug_str_offsets.dwo": 6, ".debug_macro.dwo": 7,
           ".debug_rnglists.dwo": 8}
STRINGS = ".debug_str.dwo"  # one for all units


def sections(path):
    """Contents by name."""
    data = open(path, "rb").read()
    at, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(count)]
    texts = headers[names][4]
    return {data[texts + header[0]:data.index(b"\0", texts + header[0])].decode():
            data[header[4]:header[4] + header[5]] for header in headers if header[1] not in (0, 8)}


def moved(offsets, distance):
    """A table of string offsets, for strings that begin elsewhere now."""
    head, numbers = offsets[:8], offsets[8:]
    assert struct.unpack_from("<IH", head) == (len(offsets) - 4, 5)
    count = len(numbers) // 4
    return head + struct.pack(f"<{count}I", *(number + distance for number in
                                              struct.unpack(f"<{count}I", numbers)))


def make_index(units):
    """units: of each its id and its parts, {column: (offset, length)}."""
    columns = sorted({column for _, parts in units for column in parts})
    slots = 1
    while slots * 2 < len(units) * 3:
        slots *= 2
    ids, rows = [0] * slots, [0] * slots
    for row, (number, _) in enumerate(units, 1):
        slot, step = number & (slots - 1), (number >> 32) & (slots - 1) | 1
        while rows[slot]:
            slot = (slot + step) & (slots - 1)
        ids[slot], rows[slot] = number, row
    index = struct.pack("<HHIII", 5, 0, len(columns), len(units), slots)
    index += struct.pack(f"<{slots}Q{slots}I{len(columns)}I", *ids, *rows, *columns)
    for which in (0, 1):
        for _, parts in units:
            index += struct.pack(f"<{len(columns)}I",
                                 *(parts.get(column, (0, 0))[which] for column in columns))
    return index


def write_elf(path, contents):
    names, headers, body = b"\0", [bytes(64)], b""
    for name, content in [*contents.items(), (".shstrtab", None)]:
        start = len(names)
        names += name.encode() + b"\0"
        content = names if content is None else content
        headers.append(struct.pack("<IIQQQQIIQQ", start, 3 if name == ".shstrtab" else 1, 0, 0,
                                   64 + len(body), len(content), 0, 0, 1, 0))
        body += content + bytes(-len(content) % 8)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 64 + len(body), 0,
                         64, 0, 0, 64, len(headers), len(headers) - 1)
    with open(path, "wb") as file:
        file.write(header + body + b"".join(headers))


def main():
    package, *paths = sys.argv[1:]
    whole, strings, units = {}, b"", []
    for path in paths:
        parts, found = {}, sections(path)
        version, kind = struct.unpack_from("<HB", found[".debug_info.dwo"], 4)
        assert (version, kind) == (5, 5), f"{path} has no split unit of DWARF 5"
        number, = struct.unpack_from("<Q", found[".debug_info.dwo"], 12)
        for name, column in COLUMNS.items():
            content = found.get(name)
            if not content:
                continue
            if name == ".debug_str_offsets.dwo":
                content = moved(content, len(strings))
            before = whole.setdefault(name, b"")
            parts[column] = (len(before), len(content))
            whole[name] = before + content
        strings += found.get(STRINGS, b"")
        units.append((number, parts))
    write_elf(package, {**whole, STRINGS: strings, ".debug_cu_index": make_index(units)})


main()
