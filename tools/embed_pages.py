#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns files into a C table: embed_pages.py HEADER SYMBOL OUTPUT FILE... writes a source file that
defines `SYMBOL`, an array of {name, bytes, length} in the order given, and `SYMBOL_count`. A FILE
that is a folder stands for all files in it, by name."""

import pathlib
import sys

BYTES_PER_LINE = 24


def files_of(names):
    for name in names:
        path = pathlib.Path(name)
        yield from sorted(path.iterdir()) if path.is_dir() else [path]


def main():
    header, symbol, output, *names = sys.argv[1:]
    out = [f'#include "{header}"\n']
    table = []
    for number, path in enumerate(files_of(names)):
        data = path.read_bytes()
        out.append(f"static const unsigned char file_{number}[] = {{")
        for start in range(0, len(data), BYTES_PER_LINE):
            out.append(",".join(map(str, data[start : start + BYTES_PER_LINE])) + ",")
        out.append("};\n")
        table.append(f'    {{"{path.name}", file_{number}, {len(data)}}},')
    out += [f"const struct web_file {symbol}[] = {{", *table, "};"]
    out.append(f"const size_t {symbol}_count = {len(table)};\n")
    pathlib.Path(output).write_text("\n".join(out))


main()
