#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Maps that nobody checks rot: paths.py ROOT fails when ARCHITECTURE.md names, in backticks, a path
that doesn't exist. A path is the first word in the backticks when it has a slash; `*` and `<name>`
match anything; absolute paths and build folders are left alone."""

import pathlib
import re
import sys


def missing_paths(root, text):
    # Fenced blocks are drawings and transcripts.
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for quoted in re.findall(r"`([^`\n]+)`", text):
        words = quoted.split()
        if not words or "/" not in words[0] or words[0].startswith("/"):
            continue
        path = words[0].removeprefix("./").split(":")[0].rstrip("/")
        if not path or re.match(r"build(-\w+)?/", path):
            continue
        pattern = re.sub(r"<[^>]*>", "*", path)
        if not any(root.glob(pattern)):
            yield quoted


def main():
    root = pathlib.Path(sys.argv[1])
    page = root / "ARCHITECTURE.md"
    if not page.exists():
        sys.exit("ARCHITECTURE.md does not exist.")
    missing = sorted(set(missing_paths(root, page.read_text(encoding="utf-8"))))
    for quoted in missing:
        print(f"ARCHITECTURE.md names `{quoted}`, which does not exist.")
    sys.exit(1 if missing else 0)


main()
