#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does changed.py find the tests that a change can break, and keep to the time?"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
import changed  # noqa: E402

FILES = {
    "src/base/text.h": "",
    "src/base/text.c": '#include "base/text.h"\n',
    "src/base/other.h": "",
    "src/server/route.h": '#include "base/text.h"\n',
    "src/server/route.c": '#include "server/route.h"\n',
    "tests/unit/test_text.c": '#include "base/text.h"\n',
    "tests/unit/test_route.c": '#include "server/route.h"\n',
    "tests/unit/test_other.c": '#include "base/other.h"\n',
    "tests/server/api.sh": "",
    "tests/server/common.bash": "",
    "tests/cli/top.sh": "",
    "web/ui/page.ts": "",
    "man/assay-top.1": "",
}
TESTS = ["text", "route", "other", "server-api", "server-route", "cli-top", "web-unit", "layers",
         "man-examples-assay-top.1"]
ALWAYS = {"layers"}

# What was changed, what has to run, and what must not.
CASES = [
    ("src/base/text.h", {"text", "route"}, {"cli-top", "web-unit"}),
    # Functions of a source file are declared in a header beside it.
    ("src/base/text.c", {"text", "route"}, {"server-api", "web-unit"}),
    ("src/server/route.c", {"route", "server-api", "server-route"}, {"text", "other", "cli-top"}),
    ("tests/unit/test_other.c", {"other"}, {"text", "route", "server-api"}),
    ("tests/server/api.sh", {"server-api"}, {"server-route", "route"}),
    ("tests/server/common.bash", {"server-api", "server-route"}, {"route", "cli-top"}),
    ("web/ui/page.ts", {"web-unit"}, {"text", "server-api", "cli-top"}),
    ("man/assay-top.1", {"man-examples-assay-top.1"}, {"text", "server-api"}),
]


def git(root, *arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *arguments], cwd=root, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    if not shutil.which("git"):
        print("git is not installed.")
        sys.exit(77)
    wrong = []
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-qm", "first")
        for name, expected, unexpected in CASES:
            (root / name).write_text(FILES[name] + "\n", encoding="utf-8")
            plan = changed.Plan(root, TESTS, "build")
            git(root, "checkout", "-q", ".")
            chosen = set(plan.choose(1000))
            if not (expected | ALWAYS) <= chosen or unexpected & chosen:
                wrong.append(f"{name}: {sorted(chosen)}")
        # The time is kept, the nearest come first, and what was changed itself runs in any case.
        (root / "build").mkdir()
        (root / "build/durations.json").write_text('{"text": [50, 1], "route": [5, 1], "server-api": [60, 1], "layers": [1, 1]}')
        for name in ("src/base/text.h", "tests/server/api.sh"):
            (root / name).write_text("\n", encoding="utf-8")
        plan = changed.Plan(root, TESTS, "build")
        for seconds, expected in ((0, {"server-api", "layers", "text"}),
                                  (115, {"server-api", "layers", "text", "other"}),
                                  (1000, {"server-api", "layers", "text", "route", "other"})):
            if (chosen := set(plan.choose(seconds))) != expected:
                wrong.append(f"{seconds} s: {sorted(chosen)}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
