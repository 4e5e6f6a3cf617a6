#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a file into C: embed.py INPUT HEADER SYMBOL OUTPUT writes a source file that defines the
bytes as `SYMBOL` and their count as `SYMBOL_length`, as HEADER declares them."""

import pathlib
import sys

BYTES_PER_LINE = 24


def main():
    source, header, symbol, output = sys.argv[1:]
    data = pathlib.Path(source).read_bytes()
    lines = [
        ",".join(str(byte) for byte in data[start : start + BYTES_PER_LINE])
        for start in range(0, len(data), BYTES_PER_LINE)
    ]
    pathlib.Path(output).write_text(
        f'#include "{header}"\n\n'
        f"const unsigned char {symbol}[] = {{\n" + ",\n".join(lines) + "\n};\n"
        f"const size_t {symbol}_length = sizeof({symbol});\n"
    )


main()
