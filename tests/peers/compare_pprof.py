#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares assay with pprof: compare_pprof.py [--merge A,B]... FILE...

For each file and each of its sample types, every function's flat and cumulative value and the total
must be exactly those of `pprof -top`: as the file is, by cumulative value, with filters, after
`assay convert` (also by way of OTLP and of folded stacks) and after `assay merge`.

Two differences are known and taken into account:

  - an address without a function is one row per address in assay (`libc.so.6+0x1234`) and one row
    per binary in pprof (`[libc.so.6]`). Such rows are compared address by address, with
    `pprof -addresses`;
  - a function without samples of its own or below it is listed by neither or one of the tools, as
    zero: rows of zeros are left out.

Ties in the order of rows are broken by name in pprof and as assay likes. In folded stacks, what the
format cannot hold is replaced: semicolons, control characters, and stacks that are empty.

The programs are $ASSAY and $PPROF.
"""

import argparse
import concurrent.futures
import os
import re
import sys
import tempfile

from pprof_peer import EXACT_LIMIT, Assay, PeerError, Pprof

PPROF_UNNAMED = re.compile(r"^(\[.*\]|<unknown>)$")
PPROF_ADDRESS = re.compile(r"^([0-9a-f]{16}) (\[.*\]|<unknown>)$")
NO_STACK = "[no stack]"  # what a sample without a stack is called in folded stacks
ASSAY_UNNAMED = re.compile(r"^(.*\+)?0x[0-9a-f]+$")

pprof = Pprof(os.environ["PPROF"])
assay = Assay(os.environ["ASSAY"])


def difference(expected, got):
    """The first few names on which two tables disagree, as text; empty when they agree."""
    lines = []
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            lines.append(f"    {name}: pprof {expected.get(name)}, assay {got.get(name)}")
    more = [f"    and {len(lines) - 5} more"] if len(lines) > 5 else []
    return "\n".join(lines[:5] + more)


def split(rows, unnamed):
    return (
        {name: values for name, values in rows.items() if not unnamed.match(name)},
        {name: values for name, values in rows.items() if unnamed.match(name)},
    )


def file_offset_name(address, mappings):
    """What assay calls an address without a function: its place in the binary."""
    for start, (limit, offset, base) in mappings.items():
        if start <= address < limit:
            place = address - start + offset
            return f"{base}+{place:#x}" if base else f"{place:#x}"
    return f"{address:#x}"


def unnamed_of_pprof(path, index, unit, mappings, flags):
    named = {}
    for name, values in pprof.top([path], index, unit, "-addresses", *flags).rows.items():
        if match := PPROF_ADDRESS.match(name):
            named.setdefault(file_offset_name(int(match[1], 16), mappings), []).extend(values)
        elif name in ("<unknown>",):
            named.setdefault("0x0", []).extend(values)
    return named


def folded_name(name):
    """What a line of folded stacks can hold of a name."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", name.replace(";", ":"))


class Checker:
    """All comparisons for one file. Failures are collected, not raised."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        self.failures, self.count = [], 0
        self.raw = pprof.raw(path)

    def check(self, what, text):
        self.count += 1
        if text:
            self.failures.append(f"{self.path}: {what}:\n{text}")

    def expect(self, what, expected, got):
        self.check(what, "" if expected == got else f"    pprof {expected}, assay {got}")

    def compare(self, what, index, got, pprof_flags=(), total=True, rename=str):
        """`got` against pprof's view of the original file."""
        unit = self.raw.types[index][1]
        expected = pprof.top([self.path], index, unit, *pprof_flags)
        if expected.total > EXACT_LIMIT:
            return expected
        named, unnamed = split(expected.rows, PPROF_UNNAMED)
        got_named, got_unnamed = split(got.rows, ASSAY_UNNAMED)
        text = difference({rename(name): rows for name, rows in named.items()}, got_named)
        if unnamed or got_unnamed:
            text += difference(
                unnamed_of_pprof(self.path, index, unit, self.raw.mappings, pprof_flags),
                got_unnamed,
            )
        if total and expected.total != got.total:
            text += f"    total: pprof {expected.total}, assay {got.total}"
        self.check(what, text)
        return expected

    def types(self):
        for index, (name, unit) in enumerate(self.raw.types):
            yield index, name, f"{name}/{unit}"

    def check_report(self):
        info = assay.info(self.path)
        got = [(entry["type"], entry["unit"]) for entry in info["types"]]
        self.expect("sample types", self.raw.types, got)
        for index, name, full_name in self.types():
            by_flat = assay.report(self.path, full_name)
            expected = self.compare(f"{name}: report", index, by_flat)
            self.check_order(f"{name}: order of report", by_flat, "flat")
            # info's total is the plain sum, pprof's that of magnitudes.
            flats = [row.flat for rows in expected.rows.values() for row in rows]
            total = sum(flats) if min(flats, default=0) < 0 else expected.total
            self.expect(f"{name}: total of info", total, info["types"][index]["total"])
            by_cum = assay.report(self.path, full_name, "--cum")
            self.compare(f"{name}: report --cum", index, by_cum, ("-cum",))
            self.check_order(f"{name}: order of report --cum", by_cum, "cum")

    def check_order(self, what, got, column):
        """Largest first by magnitude, as in pprof; the tools differ in how they break ties."""
        values = [abs(getattr(got.rows[name][0], column)) for name in got.order]
        self.check(what, "" if values == sorted(values, reverse=True) else f"    {values[:50]}")

    def check_filters(self):
        index = len(self.raw.types) - 1
        name, unit = self.raw.types[index]
        whole = pprof.top([self.path], index, unit)
        for expression in filter_expressions(whole):
            for option in ("focus", "ignore", "hide"):
                got = assay.report(self.path, f"{name}/{unit}", f"--{option}", expression)
                self.compare(
                    f"{name}: report --{option} '{expression}'", index, got,
                    (f"-{option}={expression}",), total=False,
                )  # fmt: skip
        for key, values in sorted(self.raw.labels.items()):
            for value in sorted(values)[:2]:
                if not re.fullmatch(r"[\w/.-]*[a-zA-Z_/][\w/.-]*", value):
                    continue
                got = assay.report(self.path, f"{name}/{unit}", "--tag", f"{key}={value}")
                self.compare(
                    f"{name}: report --tag {key}={value}", index, got,
                    (f"-tagfocus={key}=^{re.escape(value)}$",), total=False,
                )  # fmt: skip

    def check_converted(self):
        base = os.path.join(self.folder, os.path.basename(self.path).split(".")[0])
        straight, otlp, back = base + ".pb.gz", base + ".otlp", base + ".back.pb.gz"
        assay.run("convert", self.path, "-o", straight)
        assay.run("convert", self.path, "-o", otlp)
        assay.run("convert", otlp, "-o", back)
        for what, path in (("convert", straight), ("convert by way of OTLP", back)):
            self.expect(f"{what}: sample types", self.raw.types, pprof.raw(path).types)
            for index, name, _ in self.types():
                unit = self.raw.types[index][1]
                expected = pprof.top([self.path], index, unit)
                got = pprof.top([path], index, unit)
                self.check(f"{name}: {what}", difference(expected.rows, got.rows))
                self.expect(f"{name}: {what}: total", expected.total, got.total)
        self.expect(
            "convert: default type", pprof.default_type(self.path), pprof.default_type(straight)
        )

    def check_folded(self):
        name = pprof.default_type(self.path)
        index = [type_name for type_name, _ in self.raw.types].index(name)
        folded = os.path.join(self.folder, os.path.basename(self.path) + ".folded")
        assay.run("convert", self.path, "-o", folded)
        if not os.path.getsize(folded):
            self.expect("total of no folded stacks", pprof.top([self.path], index, "").total, 0)
            return
        got = assay.report(folded, None)
        got.rows.pop(NO_STACK, None)
        self.compare(f"{name}: convert to folded stacks", index, got, rename=folded_name)

    def run(self):
        for part in (
            self.check_report, self.check_filters, self.check_converted, self.check_folded
        ):  # fmt: skip
            try:
                part()
            except (PeerError, KeyError, ValueError) as error:
                self.failures.append(f"{self.path}: {part.__name__}: {error!r}")
        return self


def filter_expressions(whole):
    """Three functions with a good part of the total each, and a pattern that many match."""
    parts = [
        name for name in whole.order
        if not PPROF_UNNAMED.match(name) and abs(whole.rows[name][0].cum) * 10 < whole.total * 9
    ]  # fmt: skip
    parts.sort(key=lambda name: (-abs(whole.rows[name][0].cum), name))
    chosen = parts[:: max(1, len(parts) // 3)][:3]
    return [f"^{re.escape(name)}$" for name in chosen] + [r"^runtime\.|alloc"]


def check_file(path, folder):
    return Checker(path, folder).run()


def check_merge(paths, folder):
    """`assay merge` and `pprof -proto` of the same files, both as pprof sees them."""
    merged = os.path.join(folder, "merged-by-assay.pb.gz")
    expected_file = os.path.join(folder, "merged-by-pprof.pb.gz")
    assay.run("merge", *paths, "-o", merged)
    pprof.run("-proto", f"-output={expected_file}", *paths)
    checker = Checker(expected_file, folder)
    for index, name, full_name in checker.types():
        unit = checker.raw.types[index][1]
        expected, got = (pprof.top([path], index, unit) for path in (expected_file, merged))
        checker.check(f"{name}: merge", difference(expected.rows, got.rows))
        checker.expect(f"{name}: merge: total", expected.total, got.total)
        checker.compare(f"{name}: report of merge", index, assay.report(merged, full_name))
    checker.path = " + ".join(paths)
    return checker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merge", action="append", default=[], metavar="A,B,...")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            jobs = []
            for at, path in enumerate(options.files + options.merge):
                part = os.path.join(folder, str(at))
                os.mkdir(part)
                if at < len(options.files):
                    jobs.append(pool.submit(check_file, path, part))
                else:
                    jobs.append(pool.submit(check_merge, path.split(","), part))
            checkers = [job.result() for job in jobs]
    failures = [failure for checker in checkers for failure in checker.failures]
    for failure in failures:
        print(failure)
    count = sum(checker.count for checker in checkers)
    print(f"{count} comparisons with pprof over {len(checkers)} files, {len(failures)} differ.")
    sys.exit(1 if failures or not count else 0)


if __name__ == "__main__":
    main()
