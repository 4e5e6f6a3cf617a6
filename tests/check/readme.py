#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the README's examples on files: readme.py ROOT. Each line `$ assay ...` of a command that only
reads files (below) is run by the shell, in order, in one temporary folder that holds the files of
tests/fixtures/man; each must exit with 0."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMMANDS = "info|report|flame|diff|convert|merge"
LEAST = 8


def main():
    root = pathlib.Path(sys.argv[1])
    lines = re.findall(rf"^\$ (assay (?:{COMMANDS}) .*)$", (root / "README.md").read_text(), re.M)
    if len(lines) < LEAST:
        sys.exit(f"README.md has only {len(lines)} examples that can be run.")
    assay = pathlib.Path(os.environ["ASSAY"])
    with tempfile.TemporaryDirectory() as folder:
        for file in (root / "tests/fixtures/man").iterdir():
            shutil.copy(file, folder)
        environment = {**os.environ, "PATH": f"{assay.parent}:{os.environ['PATH']}"}
        for line in lines:
            line = line.replace("/tmp/", f"{folder}/")
            result = subprocess.run(line, shell=True, cwd=folder, env=environment, text=True,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if result.returncode:
                sys.exit(f"{line}\nends with {result.returncode}: {result.stderr}")


main()
