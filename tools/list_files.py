#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the files under FOLDER that match any of the patterns, sorted: list_files.py FOLDER
PATTERN... Meson has no such function of its own."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
found = {path for pattern in sys.argv[2:] for path in folder.glob(pattern) if path.is_file()}
print("\n".join(str(path) for path in sorted(found)))
