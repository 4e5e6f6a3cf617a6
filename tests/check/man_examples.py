#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a man page: man_examples.py PAGE. In the EXAMPLES section, each line of an
.EX/.EE block (or after .Dl) that begins with `assay` or `$ assay` is run by the shell, in order, in
one temporary folder that holds the files of $FIXTURES; each must exit with 0. A line that ends with
a backslash goes on in the next. Not run are lines that begin with `sudo`, and blocks that follow the
roff comment `.\\" not run: REASON`; a page may have no other examples."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What roff writes for characters that it would otherwise interpret.
ROFF = [(r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\(ha", "^"), (r"\(ti", "~"), (r"\&", ""),
        (r"\(rs", "\\"), (r"\e", "\\")]  # fmt: skip

# What assay says where the kernel allows no samples, or no tracing.
REFUSED = "perf_event_paranoid|no perf events|ptrace_scope|SYS_PTRACE"


def plain(line):
    line = re.sub(r"\\f(\[\w*\]|\(..|.)", "", line)
    for escape, text in ROFF:
        line = line.replace(escape, text)
    return line


def example_lines(page):
    section, in_block, not_run = "", False, False
    for line in page.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.S[Hh]\s+\"?([^\"]*)", line):
            section, in_block = match[1].strip().upper(), False
        elif section != "EXAMPLES":
            continue
        elif line.startswith('.\\" not run: '):
            not_run = True
        elif line.startswith((".EX", ".Bd -literal")):
            in_block = True
        elif line.startswith((".EE", ".Ed")):
            in_block = not_run = False
        elif line.startswith(".Dl "):
            yield plain(line[4:]), not_run
        elif in_block and not line.startswith("."):
            yield plain(line), not_run


def examples(page):
    """Yields each example and whether it is to be run."""
    pending = ""
    for line, not_run in example_lines(page):
        pending += line.strip().removeprefix("$ ")
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        if re.match(r"(sudo )?assay\b", pending):
            yield pending, not not_run and not pending.startswith("sudo ")
        pending = ""


def run_all(commands, folder):
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(os.environ["ASSAY"], os.path.join(folder, "bin", "assay"))
    work = os.path.join(folder, "work")
    shutil.copytree(os.environ["FIXTURES"], work)
    environment = {
        "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"],
        "HOME": work, "LC_ALL": "C", "TZ": "UTC", "TERM": "dumb",
    }  # fmt: skip
    failed = 0
    for command in commands:
        result = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=work, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            errors="replace", timeout=60,
        )  # fmt: skip
        if result.returncode and re.search(REFUSED, result.stdout):
            print(f"The kernel does not allow that here: {result.stdout.strip()}")
            sys.exit(77)
        if result.returncode:
            failed += 1
            print(f"exit status {result.returncode}: {command}\n{result.stdout[-2000:]}")
    return failed


def main():
    page = pathlib.Path(sys.argv[1])
    found = list(examples(page))
    if not found:
        sys.exit(f"{page.name} has no example that begins with `assay`.")
    commands = [command for command, runs in found if runs]
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(1 if run_all(commands, folder) else 0)


main()
