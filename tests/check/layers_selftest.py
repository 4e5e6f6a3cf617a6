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
    ("base/up.c", '#include "profile/profile.h"\n', "base may not use profile"),
    ("io/up.h", '#pragma once\n  # include  "profile/profile.h" // why\n', "io may not use profile"),
    ("format/up.c", '#include "cli/cli.h"\n', "format may not use cli"),
    ("elf/cfi/up.c", '#include "elf/unwind/rows.h"\n', "elf/cfi may not use elf/unwind"),
    ("format/otlp/side.c", '#include "format/jfr/jfr.h"\n', "may not use format/jfr"),
    ("bpf/walk.bpf.h", '#include "arch/x86_64/x86_64.bpf.h"\n#include "bpf/shared.h"\n', None),
    ("store/embedded/ok.c", '#include "store/internal.h"\n', None),
    ("query/private.c", '#include "store/internal.h"\n', "private"),
    ("base/library.c", "#include <xxhash.h>\n", "libc only"),
    ("format/bare.c", '#include "wire.h"\n', "names no directory"),
    ("format/dots.c", '#include "../cli/cli.h"\n', "names no directory"),
    ("base/condition.h", "int r = pthread_cond_clockwait(&a, &b, CLOCK_MONOTONIC, &c);\n", None),
    ("cli/wait.c", "pthread_cond_timedwait(&a, &b, &c);\n", "monotonic clock"),
    ("cli/lock.c", "pthread_rwlock_timedwrlock(&a, &b);\n", "monotonic clock"),
    ("misc/new.c", "#include <stdio.h>\n", "no known directory"),
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
