# SPDX-License-Identifier: Apache-2.0
"""Runs pprof and assay on profiles and turns what they print into numbers that can be compared.

pprof is asked for the unit that the profile is in, so that what it prints is exact: it formats
float64 with two digits, which is the integer itself up to 2**53. It is told to symbolize nothing.
"""

import collections
import csv
import io
import json
import os
import re
import subprocess

EXACT_LIMIT = 2**53

Row = collections.namedtuple("Row", "flat cum")
Top = collections.namedtuple("Top", "rows total order")  # rows: name -> sorted list of Row
Raw = collections.namedtuple("Raw", "types mappings labels")


class PeerError(Exception):
    pass


def run(command):
    """Standard output; bytes that are no UTF-8 become \\xNN, as in assay's JSON."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        errors="backslashreplace", check=False, timeout=120,
    )  # fmt: skip
    if result.returncode:
        raise PeerError(f"{' '.join(command)}\nexits with {result.returncode}: {result.stderr}")
    return result.stdout


def number(text):
    """`12ns`, `-3`, `4.50B`: pprof's number without its unit; only whole numbers are expected."""
    match = re.match(r"-?\d+(\.\d+)?", text)
    if not match or match[1]:
        raise PeerError(f"pprof printed {text!r} where a whole number was expected")
    return int(match[0])


def collect(rows):
    """Two functions may have one name; rows that are all zero are not shown by either tool."""
    named = collections.defaultdict(list)
    for name, row in rows:
        if row.flat or row.cum:
            named[name].append(row)
    return {name: sorted(values) for name, values in named.items()}


def escaped(name):
    return re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\x{ord(match[0]):02x}", name)


class Pprof:
    def __init__(self, program):
        self.program = program

    def run(self, *arguments):
        return run([self.program, "-symbolize=none", *arguments])

    def raw(self, path):
        """Types, mappings and text labels, as `pprof -raw` lists them."""
        types, mappings, labels, section = [], {}, collections.defaultdict(set), ""
        lines = iter(self.run("-raw", path).split("\n"))
        for line in lines:
            if line in ("Samples:", "Locations", "Mappings"):
                section = line
                if section == "Samples:":
                    names = re.sub(r"\[dflt\]", "", next(lines, ""))
                    types = [tuple(name.split("/", 1)) for name in names.split()]
            elif section == "Mappings":
                match = re.match(r"\d+: (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) (\S*)", line)
                if match:
                    start, limit, offset = (int(part, 16) for part in match.groups()[:3])
                    mappings[start] = (limit, offset, os.path.basename(match[4]))
            elif section == "Samples:" and re.match(r"\s{10,}\S+:\[", line):
                for key, value in re.findall(r"(\S+):\[([^\]]*)\]", line):
                    labels[key].add(value)
        return Raw(types, mappings, labels)

    def top(self, paths, index, unit, *flags):
        text = self.run(
            "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0",
            f"-sample_index={index}", f"-unit={unit or 'count'}", *flags, *paths,
        )  # fmt: skip
        return parse_top(text)

    def default_type(self, path):
        match = re.search(r"^Type: (.*)$", self.run("-top", "-nodecount=1", path), re.MULTILINE)
        return match[1] if match else None


def parse_top(text):
    rows, total, started = [], None, False
    for line in text.rstrip("\n").split("\n"):
        if match := re.match(r"Showing nodes accounting for .* of (\S+) total", line):
            total = number(match[1])
        elif re.match(r"\s*flat\s+flat%\s+sum%\s+cum\s+cum%$", line):
            started = True
        elif started:
            match = re.match(r"\s*(\S+)\s+\S+%\s+\S+%\s+(\S+)\s+\S+%  (.*)$", line)
            if not match:
                raise PeerError(f"pprof printed a line that was not expected: {line!r}")
            name = re.sub(r" \((partial-)?inline\)$", "", match[3])
            rows.append((name, Row(number(match[1]), number(match[2]))))
    if total is None or not started:
        raise PeerError(f"pprof printed no table: {text[:500]!r}")
    return Top(collect(rows), total, [name for name, row in rows if row.flat or row.cum])


class Assay:
    def __init__(self, program):
        self.program = program

    def run(self, command, *arguments):
        """pprof shows names as they are."""
        names = [] if command == "info" else ["--original-names"]
        return run([self.program, command, *names, *arguments])

    def info(self, path):
        return json.loads(self.run("info", path, "--format", "json"))

    def report(self, path, sample_type, *flags):
        """The table as JSON says it; CSV must say the same, with control characters as \\xNN."""
        arguments = ["report", path, "--top", "0", *flags]
        if sample_type is not None:
            arguments += ["--sample-type", sample_type]
        document = json.loads(self.run(*arguments, "--format", "json"))
        rows = [(row["function"], Row(row["flat"], row["cum"])) for row in document["rows"]]
        lines = csv.DictReader(io.StringIO(self.run(*arguments, "--format", "csv"), newline=""))
        if [(line["function"], Row(int(line["flat"]), int(line["cum"]))) for line in lines] != [
            (escaped(name), row) for name, row in rows
        ]:
            raise PeerError("assay report says one thing as CSV and another as JSON")
        order = [name for name, row in rows if row.flat or row.cum]
        return Top(collect(rows), document["total"], order)
