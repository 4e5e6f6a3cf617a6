#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_symbols.py DUMP-SYMBOLS FILE [SYMBOL-FILE]: what our table says about FILE's functions,
against readelf's list of them (of SYMBOL-FILE, where FILE is stripped) and c++filt's names.
With SYMBOL-FILE and --unnamed, only the starts are compared, which come from unwind entries."""

import collections
import subprocess
import sys


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def executable_sections(path):
    ranges = []
    for line in run("readelf", "-SW", path).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 7 and fields[0][1:-1].isdigit() and "X" in fields[7]:
            ranges.append((int(fields[3], 16), int(fields[3], 16) + int(fields[5], 16)))
    return ranges


def functions(path):
    """Sized functions as start -> (end, names), out of .symtab or else .dynsym."""
    tables = collections.defaultdict(dict)
    table = None
    for line in run("readelf", "-sW", path).splitlines():
        fields = line.split(None, 7)
        if line.startswith("Symbol table"):
            table = fields[2].strip("'")
        elif len(fields) < 8 or fields[6] in ("UND", "ABS"):
            continue
        elif fields[3] in ("FUNC", "IFUNC"):
            start, size = int(fields[1], 16), int(fields[2], 0)
            end, names = tables[table].get(start, (start, set()))
            name = fields[7].split("@")[0].rstrip()
            tables[table][start] = (max(end, start + size), names | {name})
    return tables[".symtab"] or tables[".dynsym"]


def main():
    unnamed = "--unnamed" in sys.argv
    program, path, *other = [word for word in sys.argv[1:] if word != "--unnamed"]
    truth = functions(other[0] if other else path)
    code = executable_sections(path)
    truth = {start: what for start, what in truth.items()
             if what[0] > start and any(low <= start < high for low, high in code)}
    expected = {}  # address -> start of the function that began last and still goes on
    for start, (end, _) in truth.items():
        for address in {start, (start + end) // 2, end - 1}:
            expected[address] = None
    starts, open_functions = sorted(truth), []
    position = 0
    for address in sorted(expected):
        while position < len(starts) and starts[position] <= address:
            open_functions.append(starts[position])
            position += 1
        open_functions = [start for start in open_functions if truth[start][0] > address]
        expected[address] = open_functions[-1]
    addresses = sorted(expected)
    answers = run(program, path, text="".join(f"{address:x}\n" for address in addresses))
    answers = [line.split("\t") for line in answers.splitlines()]
    assert len(answers) == len(addresses)

    readable = run("c++filt", "-p", "-i", text="".join(name + "\n" for _, name, _ in answers))
    wrong = []
    demangled = 0
    for address, (start, name, shown), filtered in zip(addresses, answers, readable.split("\n")):
        want = expected[address]
        if start != f"{want:x}":
            wrong.append(f"{address:x}: starts at {start}, not {want:x}")
        elif not unnamed and name not in truth[want][1]:
            wrong.append(f"{address:x}: {name!r} is none of {truth[want][1]}")
        # c++filt takes names apart that no C++ or Rust compiler makes.
        elif not unnamed and name.startswith(("_Z", "_R")) and shown != filtered:
            wrong.append(f"{address:x}: {shown!r} instead of {filtered!r}")
        demangled += shown != name
    print(f"{path}: {len(truth)} functions, {len(addresses)} addresses, {demangled} demangled, "
          f"{len(wrong)} wrong")
    for line in wrong[:20]:
        print("  " + line)
    if not truth or wrong:
        sys.exit(1)


main()
