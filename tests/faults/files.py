#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large allocations fail while a program reads files: files.py POINTS FILE... ($DUMP_ROWS,
$DUMP_SYMBOLS, $FAULTS_LIBRARY).

At POINTS places, five in a row fail, so that a second try fails as well: the program does without
the file or says that it can't read it, and never ends by a signal."""

import os, subprocess, sys

from faults import ERRORS, Faults, spread


def run(faults, tool, file):
    return subprocess.run([os.environ[tool], file], input=b"1000\n", capture_output=True,
                          env=faults.environment())


def main():
    faults, points = Faults(), int(sys.argv[1])
    for tool in ["DUMP_ROWS", "DUMP_SYMBOLS"]:
        for file in sys.argv[2:]:
            before = faults.seen("large")
            whole = run(faults, tool, file)
            total = faults.seen("large") - before
            if whole.returncode or not total:
                sys.exit(f"{tool} {file}: {whole.returncode}, {total} places: {whole.stderr.decode()}")
            read = 0
            fired = faults.failed("large")
            for place in spread(total, points):
                faults.arm("large", place, 5, ERRORS["large"][0])
                done = run(faults, tool, file)
                faults.disarm()
                if done.returncode < 0 or done.returncode and not done.stderr:
                    sys.exit(f"{tool} {file}, place {place} of {total}: it ended with "
                             f"{done.returncode}: {done.stderr.decode()}")
                # Rows of a part of the file would be wrong ones elsewhere.
                if tool == "DUMP_ROWS" and not done.returncode and rows(done) != rows(whole):
                    sys.exit(f"{file}, place {place} of {total}: other rows than with enough memory.")
                read += not done.returncode
            if faults.failed("large") == fired:
                sys.exit(f"{tool} {file}: none of the faults happened.")
            print(f"{tool} {os.path.basename(file)}: {total} places, {read} times read in spite of faults")


def rows(done):
    return [line for line in done.stdout.splitlines() if line[:1] in b"RF"]


main()
