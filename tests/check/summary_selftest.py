#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does run.py count right? A closing line that hides a failure would hide all of them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
from run import AGAIN, Tally, run_again, tally_of  # noqa: E402

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
    ("OK", "1..2\nnot ok 1 # SKIP a\nok 2 - b\n", "1 passed, 1 failed"),
    ("OK", "1..2\n# no root\nnot ok 1 # SKIP d\nnot ok 2 # SKIP e\n", "0 passed, 1 failed, 1 skipped"),
    ("SKIP", "", "0 passed, 1 failed"),
    ("SKIP", "no tool\n1..3\nok 1 - a # SKIP x\n", "0 passed, 0 failed, 1 skipped"),
    ("FAIL", "not ok - a\n  # why\nok - b\n1 check failed.\n", "1 passed, 1 failed"),
    ("OK", "# tests 7\n# pass 7\n# fail 0\n", "7 passed, 0 failed"),
]


def second_runs():
    """What is said when `names` have failed and only `lasting` of them do again."""
    said = []
    for names, lasting in (["a"], []), (["a", "b"], ["b"]), (["meson"], []), ([], []):
        bad = Tally(failed=1, excerpts=["failed: so"])
        tallies = {"fine": Tally(passed=1)} | {name: bad for name in names}
        alone = {name: bad if name in lasting else Tally(passed=1) for name in names}
        run_again(tallies, lambda asked, alone=alone: {name: alone[name] for name in asked})
        total = Tally()
        for tally in tallies.values():
            total.add(tally)
        said.append((total.line(), len(total.excerpts), len(total.unsteady)))
    many = {str(i): Tally(failed=1) for i in range(AGAIN + 1)}
    run_again(many, lambda asked: {n: Tally(passed=1) for n in asked})
    said.append(sum(tally.failed for tally in many.values()))
    return said


SECOND_RUNS = [
    ("2 passed, 0 failed, 1 unsteady", 0, 1),
    ("2 passed, 1 failed, 1 unsteady", 1, 1),
    ("1 passed, 1 failed", 1, 0),
    ("1 passed, 0 failed", 0, 0),
    AGAIN + 1,
]


def main():
    failed = second_runs() != SECOND_RUNS
    if failed:
        print(f"second runs: {second_runs()}")
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
    if total.skipped != ["x: no perf here", "x/b: no root", "x/c: no data", "x/d: no root",
                         "x: no tool"]:
        failed = True
        print(f"The reasons of skips are lost: {total.skipped}")
    sys.exit(1 if failed else 0)


main()
