#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how a program was built: hardening.py FILE. Prints each property with `yes` or `no`, and
fails when one is missing. Reads the file by readelf and objdump; it doesn't trust build flags."""

import re
import subprocess
import sys

LEAST_LANDING_PADS = 0.9  # share of functions; a static library may have been built without


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def landing_pads(path):
    """Of the functions that other files can call: how many begin with endbr64,
    and how many there are. A static function whose address is never taken needs none."""
    code = run("objdump", "-d", "--no-show-raw-insn", path)
    first = re.findall(r"^[0-9a-f]+ <(\w+)>:\n\s*[0-9a-f]+:\s+(\S+)", code, re.MULTILINE)
    symbols = run("readelf", "-sW", path)
    shared = set(re.findall(r"FUNC\s+GLOBAL\s+\w+\s+\d+ (\w+)$", symbols, re.MULTILINE))
    own = [instruction for name, instruction in first if name in shared]
    return sum(instruction == "endbr64" for instruction in own), len(own)


def properties(path):
    header, segments = run("readelf", "-hW", path), run("readelf", "-lW", path)
    dynamic, symbols = run("readelf", "-dW", path), run("readelf", "--dyn-syms", "-W", path)
    yield "position-independent executable", "DYN (" in header and bool(
        re.search(r"FLAGS_1\).*PIE", dynamic)
    )
    yield "read-only relocations", "GNU_RELRO" in segments
    yield "bound at start", bool(re.search(r"FLAGS(_1)?\).*\b(BIND_)?NOW", dynamic))
    yield "no executable stack", bool(re.search(r"GNU_STACK\s.*\sRW\s", segments))
    yield "no writable code", not re.search(r"LOAD\s.*\sRWE\s", segments)
    yield "no search path for libraries", not re.search(r"\((RPATH|RUNPATH)\)", dynamic)
    yield "stack protector", "__stack_chk_fail" in symbols
    yield "fortified libc calls", bool(re.search(r" __\w+_chk@", symbols))
    if "X86-64" in header:
        found, total = landing_pads(path)
        yield (
            f"CET landing pads ({found} of {total} functions)",
            total > 0 and found >= LEAST_LANDING_PADS * total,
        )


def main():
    missing = 0
    for name, is_there in properties(sys.argv[1]):
        print(f"{'yes' if is_there else 'no':3}  {name}")
        missing += not is_there
    sys.exit(1 if missing else 0)


main()
