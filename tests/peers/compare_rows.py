#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_rows.py DUMP-ROWS READELF FILE...: our unwind rows of each file against what readelf says
of the same: each of its rows, at its first and last byte; what is between functions; where functions
start and end. Prints one line per file. What our rules can't say must be an expression that is
listed here."""

import bisect
import re
import subprocess
import sys

NONE, END, UNSUPPORTED, SP, FP, REGISTER, PLT, AT_SP, AT_FP, SIGNAL, IP_IN_REGISTER = range(11)
CLONE = 12
FP_SAME, FP_AT_CFA, FP_AT_FP, FP_LOST, FP_AT_SP = range(5)
RBX_UNKNOWN, RBX_SAME = range(2)

REGISTERS = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"] + [f"r{n}" for n in range(8, 16)]

# What rules can't say. OpenSSL's Montgomery multiplication indexes its saved stack pointer by
# another register.
UNSUPPORTED_EXPRESSIONS = [
    re.compile(r"DW_OP_breg7 \(rsp\): -?\d+; DW_OP_breg\d+ \(r\w+\): 0; DW_OP_lit8; DW_OP_mul; "
               r"DW_OP_plus; DW_OP_deref; DW_OP_plus_uconst: 8"),
]

ENTRY = re.compile(r"^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ "
                   r"(?:CIE|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))")
ROW = re.compile(r"^[0-9a-f]{16} \S+ ")
EXPRESSION = re.compile(r"^  DW_CFA_(def_cfa_expression|expression|val_expression)"
                        r"(?:: r(\d+) \(\w+\))? \((.*)\)$")


def run(*command):
    """The lines of a command's output. readelf fails for files whose separate debug file it can't
    find, and says all the same what it was asked for."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False)
    if done.returncode and not done.stdout:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    return done.stdout.splitlines()


def our_rows(dump, path):
    starts, rules, functions, figures = [], [], [], {}
    for line in run(dump, path):
        kind, *fields = line.split()
        if kind == "R":
            rule = tuple(int(field) for field in fields[1:])
            address = int(fields[0], 16)
            if starts and address <= starts[-1]:
                sys.exit(f"{path}: rows are not in order at {address:#x}.")
            starts.append(address)
            rules.append(rule)
        elif kind == "F":
            functions.append((int(fields[0], 16), int(fields[1], 16)))
        else:
            figures[fields[0]] = float(fields[1])
    return starts, rules, functions, figures


def section_of(line):
    return line.startswith("Contents of the")


def their_expressions(readelf, path):
    """{(section, fde offset): {"cfa" | register number: set of expressions}}; a CIE's too."""
    found, section, current = {}, "", None
    for line in run(readelf, "--debug-dump=frames", "--wide", path):
        if section_of(line):
            section = line
        elif line and line[0] in "0123456789abcdef":
            current = found.setdefault((section, line.split()[0]), {})
        elif current is not None:
            match = EXPRESSION.match(line)
            if match:
                kind = "cfa" if match[1] == "def_cfa_expression" else int(match[2])
                current.setdefault(kind, set()).add(match[3])
    return found


def their_rows(readelf, path):
    """[(section, offset, start, end, [(location, {column: text})])] of all FDEs."""
    entries, cies, section, rows, columns = [], {}, "", [], None
    for line in run(readelf, "--debug-dump=frames-interp", "--wide", path):
        match = ENTRY.match(line)
        if section_of(line):
            section = line
        elif match:
            rows, columns = [], None
            if match[2] is None:
                cies[section, match[1]] = rows
            else:
                start, end = int(match[3], 16), int(match[4], 16)
                entries.append((section, match[1], start, end, rows, (section, match[2])))
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif columns and ROW.match(line):
            fields = line.replace(" (", "(").split()  # a register is "r5 (rdi)"
            rows.append((int(fields[0], 16), dict(zip(columns, fields[1:]))))
    # An FDE that says nothing of its own has no row here: its CIE's holds.
    return [(section, offset, start, end, rows or [(start, cies[cie][-1][1])])
            for section, offset, start, end, rows, cie in entries]


def cfa_text(rule):
    """What readelf would say of a rule's CFA."""
    kind, argument, offset = rule[:3]
    if kind in (SP, IP_IN_REGISTER):
        return f"rsp{offset:+}"
    if kind == FP:
        return f"rbp{offset:+}"
    if kind == REGISTER:
        return f"{REGISTERS[argument]}{offset:+}"
    return "exp"


def cfa_expression(rule):
    kind, argument, offset = rule[:3]
    if kind == PLT:
        return (f"DW_OP_breg7 (rsp): {offset}; DW_OP_breg16 (rip): 0; DW_OP_lit15; DW_OP_and; "
                f"DW_OP_lit{argument}; DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus")
    if kind in (AT_SP, AT_FP, SIGNAL):
        text = "DW_OP_breg7 (rsp)" if kind != AT_FP else "DW_OP_breg6 (rbp)"
        text += f": {offset}; DW_OP_deref"
        return text + (f"; DW_OP_plus_uconst: {8 * argument}" if argument and kind != SIGNAL else "")
    return None


def rbp_agrees(rule, text, expressions):
    kind, offset, where, slot = rule[0], rule[2], rule[3] & 15, rule[4]
    if kind == SIGNAL:
        return text == "exp" and f"DW_OP_breg7 (rsp): {offset - 40}" in expressions.get(6, ())
    if text in ("u", "s"):
        return where == FP_SAME
    if where == FP_AT_CFA:
        return text == f"c{slot * 8:+}"
    if where in (FP_AT_FP, FP_AT_SP):
        register = "DW_OP_breg6 (rbp)" if where == FP_AT_FP else "DW_OP_breg7 (rsp)"
        return text == "exp" and f"{register}: {slot * 8}" in expressions.get(6, ())
    return False


def rbx_agrees(rule, text, expressions):
    """rbx may be unknown, and is so in most files; where it is known it must be right."""
    code = rule[3] >> 4
    if rule[0] == SIGNAL:
        return text == "exp" and f"DW_OP_breg7 (rsp): {rule[2] - 32}" in expressions.get(3, ())
    if code == RBX_UNKNOWN:
        return True
    return text in ("u", "s") if code == RBX_SAME else text == f"c{-8 * code:+}"


def agrees(rule, columns, expressions):
    """True, False, or None for what is documented as not supported."""
    ra, cfa = columns.get("ra", "?"), columns["CFA"]
    if ra == "u":
        return rule[0] == END
    if rule[0] == UNSUPPORTED:
        known = cfa == "exp" and any(pattern.fullmatch(text) for pattern in UNSUPPORTED_EXPRESSIONS
                                     for text in expressions.get("cfa", ()))
        # The last instructions of longjmp and setcontext: all is in a buffer, not on a stack.
        jumps = columns.get("rsp", "u") != "u"
        return None if known or jumps else False
    if rule[0] == END or cfa != cfa_text(rule):
        return False
    if columns.get("rsp", "u") != "u" and rule[0] != SIGNAL:
        return False
    if cfa == "exp" and cfa_expression(rule) not in expressions.get("cfa", ()):
        return False
    if rule[0] == SIGNAL:
        if ra != "exp" or f"DW_OP_breg7 (rsp): {rule[2] + 8}" not in expressions.get(16, ()):
            return False
    elif rule[0] == IP_IN_REGISTER:
        if ra != f"r{rule[1]}({REGISTERS[rule[1]]})":
            return False
    elif ra != "c-8":
        return False
    return rbp_agrees(rule, columns.get("rbp", "u"), expressions) and rbx_agrees(
        rule, columns.get("rbx", "u"), expressions)


def unsaid(readelf, path, ranges):
    """What no FDE says and is known all the same, as (start, end, [(start, rule)]): .init and .fini
    as compilers' start files have them, and the program's first code up to the next function."""
    found = []
    for line in run(readelf, "-SW", path):
        match = re.match(r" +\[ *\d+\] \.(?:init|fini) +PROGBITS +(\w+) (\w+) (\w+) ", line)
        if not match:
            continue
        start, offset, size = (int(text, 16) for text in match.groups())
        with open(path, "rb") as file:
            file.seek(offset)
            code = file.read(size)
        if match := re.fullmatch(rb"((?:\xf3\x0f\x1e\xfa)?\x48\x83\xec\x08).*\x48\x83\xc4\x08\xc3",
                                 code, re.DOTALL):
            found.append((start, start + size, [(start, (SP, 0, 8, 0, 0)),
                                                (start + len(match[1]), (SP, 0, 16, 0, 0)),
                                                (start + size - 1, (SP, 0, 8, 0, 0))]))
    entry = next(int(line.split()[-1], 16) for line in run(readelf, "-h", path) if "Entry" in line)
    behind = min((start for start, _ in ranges + found_ranges(found) if start >= entry), default=0)
    if entry and entry < behind <= entry + 256 and not any(a <= entry < b for a, b in ranges):
        found.append((entry, behind, [(entry, (END, 0, 0, 0, 0))]))
    return found


def code_between(readelf, path):
    """A function from (start, end) to the bytes of .text there."""
    for line in run(readelf, "-SW", path):
        if match := re.match(r" +\[ *\d+\] \.text +PROGBITS +(\w+) (\w+) (\w+) ", line):
            address, offset, size = (int(text, 16) for text in match.groups())
            with open(path, "rb") as file:
                file.seek(offset)
                code = file.read(size)
            return lambda start, end: code[start - address : end - address] if start >= address else b""
    return lambda start, end: b""


def found_ranges(found):
    return [(start, end) for start, end, _ in found]


def compare(dump, readelf, path):
    starts, rules, functions, figures = our_rows(dump, path)
    expressions = their_expressions(readelf, path)
    checked = unsupported = covered_to = 0
    wrong, expected_starts, ranges = [], set(), []

    def at(address):
        index = bisect.bisect_right(starts, address) - 1
        return rules[index] if index >= 0 else (NONE, 0, 0, 0, 0)

    for section, offset, start, end, rows in their_rows(readelf, path):
        if start == 0 or start == end:
            continue
        ranges.append((start, end))
        limits = [location for location, _ in rows[1:]] + [end]
        for (location, columns), limit in zip(rows, limits):
            if location >= limit:
                continue
            expected_starts.add(location)
            for address in {location, limit - 1}:
                verdict = agrees(at(address), columns, expressions[section, offset])
                if verdict is False:
                    wrong.append(f"at {address:#x} readelf has {columns}, ours is {at(address)}")
            checked += 1
            unsupported += verdict is None
    for start, end, rows in unsaid(readelf, path, ranges):
        ranges.append((start, end))
        for (location, rule), limit in zip(rows, [location for location, _ in rows[1:]] + [end]):
            expected_starts.add(location)
            for address in (location, limit - 1):
                if at(address) != rule:
                    wrong.append(f"at {address:#x} {rule} was expected, ours is {at(address)}")
    ranges.sort()
    code = code_between(readelf, path)
    for (start, end) in ranges + [(1 << 64, 0)]:
        if covered_to and start > covered_to:
            expected_starts.add(covered_to)
            # Behind the system call that starts a thread, C libraries say nothing on purpose.
            clones = start - covered_to <= 32 and re.fullmatch(
                rb"\x0f\x05\x48\x85\xc0.*\xc3\x31\xed", code(covered_to, start + 2), re.DOTALL)
            for address in (covered_to, start - 1):
                if clones and at(address) != (CLONE, 0, 8, 0, 0):
                    wrong.append(f"a thread starts at {address:#x}, ours is {at(address)}")
        covered_to = max(covered_to, end)
    # Functions without call frame information have rows from their code, which readelf knows nothing
    # of: tests/unit/test_unwind_code.c compares those.
    begins = [start for start, _ in ranges]
    for index, address in enumerate(starts):
        changes = index > 0 and rules[index] != rules[index - 1]
        range_index = bisect.bisect_right(begins, address) - 1
        known = range_index >= 0 and address < ranges[range_index][1]
        if changes and known and address not in expected_starts:
            wrong.append(f"there is no row at {address:#x}, ours is {rules[index]}")
    # Ours may be longer, by code without call frame information beside them.
    firsts = [start for start, _ in functions]
    odd = [(start, end) for start, end in ranges
           if end > max((last for _, last in functions[: bisect.bisect_right(firsts, start)]), default=0)]
    if odd:
        wrong.append(f"{len(odd)} functions are missing: {[tuple(map(hex, r)) for r in odd[:5]]}")
    if figures["bad"] or not checked:
        wrong.append(f"{checked} rows were checked, {figures['bad']:.0f} entries were damaged")

    print(f"{path}: {checked} rows of readelf's in {len(ranges)} functions checked, {len(wrong)} differ, "
          f"{unsupported} not supported; ours: {figures['rows']:.0f} rows, {figures['rules']:.0f} "
          f"rules, {figures['row_bytes'] / 1024:.0f} KiB, {figures['milliseconds']} ms")
    for text in wrong[:10]:
        print(f"    {text}")
    return not wrong


def main():
    dump, readelf, *paths = sys.argv[1:]
    good = [compare(dump, readelf, path) for path in paths]
    sys.exit(0 if good and all(good) else 1)


main()
