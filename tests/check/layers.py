#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point downward only: layers.py ROOT fails when a file under ROOT/src includes a header
of a layer above its own, or when base includes anything but libc. ARCHITECTURE.md explains the
layers."""

import pathlib
import re
import sys

# From the bottom up; a layer may include itself and those before it.
LAYERS = [
    "base", "config", "profile", "format", "elf", "symbol", "label", "http", "simulate",
    "bpf", "capture", "agent", "store", "query", "server", "cli",
]  # fmt: skip

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
LIBC = re.compile(
    r"^(?:(?:sys|linux|arpa|net|netinet)/[a-z0-9_/]+"
    r"|assert|ctype|dirent|dlfcn|elf|endian|errno|fcntl|float|fnmatch|getopt|glob|grp|inttypes"
    r"|libgen|limits|link|locale|malloc|math|netdb|poll|pthread|pwd|sched|search|semaphore|signal"
    r"|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|syslog"
    r"|termios|threads|time|ucontext|unistd|wchar)\.h$"
)


def complaints_about(path, layer):
    """Yields one sentence per include in the file that may not be there."""
    for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
        system, header = match[1] == "<", match[2]
        if system:
            if layer == "base" and not LIBC.match(header):
                yield f"includes <{header}>, but base uses libc only"
            continue
        target = header.split("/")[0] if "/" in header else None
        if target not in LAYERS:
            yield f'includes "{header}", which names no layer: write it as seen from src/'
        elif LAYERS.index(target) > LAYERS.index(layer):
            yield f'includes "{header}" of a layer above {layer}'


def main():
    source = pathlib.Path(sys.argv[1]) / "src"
    files = sorted(path for path in source.rglob("*") if path.suffix in (".c", ".h"))
    if not files:
        sys.exit(f"There are no C files under {source}.")
    failed = False
    for path in files:
        relative = path.relative_to(source)
        layer = relative.parts[0]
        if layer not in LAYERS or len(relative.parts) < 2:
            problems = [f"is in no known layer; {sys.argv[0]} lists them"]
        else:
            problems = list(complaints_about(path, layer))
        for problem in problems:
            print(f"src/{relative} {problem}.")
            failed = True
    sys.exit(1 if failed else 0)


main()
