#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_plt.py DUMP-SYMBOLS FILE...: the names of all linkage stubs, against objdump's. Where
objdump has only an address, for functions that are chosen when the program starts, ours may be a
name. Stubs that objdump gives no name may have one."""

import re
import subprocess
import sys

SECTIONS = [".plt", ".plt.sec", ".plt.got", ".iplt"]


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def objdump_stubs(path):
    wanted = [word for name in SECTIONS for word in ("-j", name)]
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *wanted, path],
                             capture_output=True, text=True, check=False).stdout
    stubs = {}
    for address, name in re.findall(r"^([0-9a-f]+) <(.*@plt)>:$", listing, re.M):
        stubs[int(address, 16)] = name
    return stubs


def main():
    program, *paths = sys.argv[1:]
    total = chosen = 0
    for path in paths:
        stubs = objdump_stubs(path)
        addresses = [address + inside for address in stubs for inside in (0, 7)]
        lines = run(program, path, text="".join(f"{a:x}\n" for a in addresses)).splitlines()
        assert len(lines) == len(addresses), path
        for address, line in zip(addresses, lines):
            start, name, _ = line.split("\t")
            expected = stubs.get(address, stubs.get(address - 7))
            if expected.startswith("*ABS*+") and name.endswith("@plt"):
                chosen += 1
                continue
            if name != expected or int(start, 16) not in (address, address - 7):
                sys.exit(f"{path}: {address:#x} is {name} at {start}, and by objdump {expected}.")
        total += len(stubs)
    print(f"{total} stubs of {len(paths)} files, {chosen // 2} of them chosen at start")
    if not total:
        sys.exit("No stub was compared.")


main()
