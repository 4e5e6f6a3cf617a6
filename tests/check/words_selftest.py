#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests words.py: plants one text at a time in a small tree."""

import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("words.py")

# Name of the planted file, its text, and the words the complaint must have (None: no complaint).
CASES = [
    ("src/a.c", 'error_set(e, "Failed to open %s");\n', None),
    ("src/a.c", 'error_set(e, "The folder %s");\n', '"folder"'),
    ("src/a.c", 'error_set(e, "\\"%s\\" is "\n      "no role");\n', '"is no '),
    ("src/a.c", "// The folder of a comment.\n/* This is no text. */\nint a;\n" + 'char *b = "b c";\n', None),
    ("src/a.c", "char c = '\"'; // folder\nchar *d = \"d e\";\n", None),
    ("src/a.c", 'error_set(e, "is no longer valid");\n', None),
    ("src/a.h", '#define TOO_LONG "has %zu bytes; %d may be."\n', '"may be"'),
    ("src/a.c", 'puts("%s wants a token");\n', '"wants a'),
    ("man/assay-x.1", "The file, assay.pb unless given.\n", '"unless given"'),
    ("man/assay-x.1", '.\\" folder\nText.\n', None),
    ("docs/x.md", "the dearest first\n", '"dearest"'),
    ("docs/formats/x.md", "A file that was cut off.\n", '"cut off"'),
    ("docs/openapi.json", '{"a": {"description": "Whoever"}, "whoever": 1}\n', '"Whoever"'),
    ("docs/openapi.json", '{"whoever": {"description": "Users"}}\n', None),
    ("web/ui/a.tsx", "return <h1>This server wants a token</h1>;\n", '"wants a'),
    ("web/ui/a.tsx", "out.push(`in that folder of ${x}`);\n", '"folder"'),
    ("web/ui/a.tsx", "// a folder\nconst a = 'b';\n", None),
    ("README.md", "A made-up fleet.\n", '"made-up"'),
    ("docs/x.md", "A build that nobody uploaded.\n", '"nobody"'),
    ("docs/x.md", "It ends. What was recorded is written in all cases.\n", '"What was'.replace('"', '". ')),
    ("docs/x.md", "What a host costs while it is idle isn't distributed.\n", '"What a host'),
    ("docs/x.md", "What a fix is worth:\n", None),
    ("docs/x.md", "It reports what was recorded, which is large.\n", None),
]


def run_on(name, text):
    with tempfile.TemporaryDirectory() as root:
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, CHECKER, root], capture_output=True, text=True, check=False
        )


def main():
    failures = 0
    for name, text, words in CASES:
        result = run_on(name, text)
        right = result.returncode == 0 if words is None else (
            result.returncode != 0 and words in result.stdout)  # fmt: skip
        if not right:
            failures += 1
            print(f"{name}: {text!r} gave {result.returncode}: {result.stdout}{result.stderr}")
    with tempfile.TemporaryDirectory() as root:
        if subprocess.run([sys.executable, CHECKER, root], capture_output=True).returncode == 0:
            failures += 1
            print("An empty tree passes.")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
