#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does run.py count right? A closing line that hides a failure would hide all of them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
from run import Tally, tally_of  # noqa: E402

# Result and output of a test, and the closing line that they make.
CASES = [
    ("OK", "", "1 passed, 0 failed"),
    ("OK", "1..2\nok 1 - a\nok 2 - b\n", "2 passed, 0 failed"),
    ("OK", "ok - a\nok - b\n", "2 passed, 0 failed"),
    ("FAIL", "1..2\nok 1 - a\nnot ok 2 - b\n", "1 passed, 1 failed"),
    ("FAIL", "1..3\nok 1 - a\n", "1 passed, 1 failed"),
    ("FAIL", "", "0 passed, 1 failed"),
    ("TIMEOUT", "ok 1 - a\n", "1 passed, 1 failed"),
    ("ERROR", "", "0 passed, 1 failed"),
    ("SKIP", "looking\nno perf here\n", "0 passed, 0 failed, 1 skipped"),
    ("OK", "ok 1 - a\nok 2 - b # SKIP no root\n", "1 passed, 0 failed, 1 skipped"),
    ("OK", "ok 1 - a\n# no data\nnot ok 2 # SKIP c\n", "1 passed, 0 failed, 1 skipped"),
    ("FAIL", "not ok - a\n  # why\nok - b\n1 check failed.\n", "1 passed, 1 failed"),
    ("OK", "# tests 7\n# pass 7\n# fail 0\n", "7 passed, 0 failed"),
]


def main():
    failed = False
    total = Tally()
    for result, output, expected in CASES:
        tally = tally_of({"name": "suite / x", "result": result, "stdout": output})
        total.add(tally)
        if tally.line() != expected:
            failed = True
            print(f"{result} {output!r}: expected {expected!r}, got {tally.line()!r}")
        if tally.failed and not tally.excerpts:
            failed = True
            print(f"{result} {output!r}: the failure is not shown")
    if total.skipped != ["x: no perf here", "x/b: no root", "x/c: no data"]:
        failed = True
        print(f"The reasons of skips are lost: {total.skipped}")
    sys.exit(1 if failed else 0)


main()
