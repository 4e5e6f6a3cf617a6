#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does layers.py find what it is there for? Plants one fault at a time in a small tree."""

import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("layers.py")

# Name of the planted file, its text, and the words the complaint must have (None: no complaint).
CASES = [
    ("base/ok.c", '#include "base/error.h"\n#include <stdio.h>\n', None),
    ("cli/ok.c", '#include "base/error.h"\n#include "format/format.h"\n#include <zstd.h>\n', None),
    ("base/up.c", '#include "profile/profile.h"\n', "above base"),
    ("profile/up.h", "#pragma once\n  # include  \"format/wire.h\" // why\n", "above profile"),
    ("format/up.c", '#include "cli/cli.h"\n', "above format"),
    ("base/library.c", "#include <xxhash.h>\n", "libc only"),
    ("format/bare.c", '#include "wire.h"\n', "names no layer"),
    ("format/dots.c", '#include "../cli/cli.h"\n', "names no layer"),
    ("misc/new.c", "#include <stdio.h>\n", "no known layer"),
]


def run_on(name, text):
    with tempfile.TemporaryDirectory() as root:
        path = pathlib.Path(root, "src", name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return subprocess.run(
            [sys.executable, CHECKER, root], capture_output=True, text=True, check=False
        )


def main():
    failed = False
    for name, text, expected in CASES:
        result = run_on(name, text)
        good = result.returncode == (1 if expected else 0) and (expected or "") in result.stdout
        if not good:
            failed = True
            print(f"{name}: expected {expected!r}, got {result.returncode}: {result.stdout}")
    sys.exit(1 if failed else 0)


main()
