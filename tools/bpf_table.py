#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of embedded BPF objects as C: bpf_table.py OUTPUT NAME... where each NAME has been
embedded as bpf_NAME_object by embed.py. capture/bpf/object.h declares the table."""

import pathlib
import sys


def main():
    output, *names = sys.argv[1:]
    declarations = "".join(
        f"extern const unsigned char bpf_{name}_object[];\n"
        f"extern const size_t bpf_{name}_object_length;\n"
        for name in names
    )
    rows = "".join(
        f'    {{"{name}.bpf.o", bpf_{name}_object, &bpf_{name}_object_length}},\n' for name in names
    )
    pathlib.Path(output).write_text(
        f'#include "capture/bpf/object.h"\n\n{declarations}\n'
        f"const struct bpf_embedded bpf_embedded[] = {{\n{rows}}};\n"
        f"const size_t bpf_embedded_count = {len(names)};\n"
    )


main()
