#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_v8.c: memory of a process with one JavaScript function, by the kind of its
name. make_v8_seeds.py DIRECTORY"""

import pathlib
import struct
import sys

SHARED, SCRIPT, SCOPE, NAME, PATH, PARTS = 0x40, 0x80, 0xC0, 0x120, 0x150, 0x180
MAPS = {"shared": 262, "script": 167, "scope": 261, "flat": 8, "wide": 0, "joined": 9, "sliced": 11, "thin": 13}


class Image:
    def __init__(self, name):
        self.bytes = bytearray(0x300)
        self.maps = {}
        for i, (kind, number) in enumerate(MAPS.items()):
            self.maps[kind] = 0x200 + 0x20 * i + 1
            struct.pack_into("<H", self.bytes, 0x200 + 0x20 * i + 12, number)
        self.words(SHARED, self.maps["shared"], 0, name + 1, 0, SCRIPT + 1)
        self.words(SCRIPT, self.maps["script"], 0, PATH + 1)
        self.words(SCOPE, self.maps["scope"], 0, 0, 1 << 32, NAME + 1, 0, NAME + 1)
        self.flat(NAME, b"handler")
        self.flat(PATH, b"/srv/main.js")

    def words(self, at, *words):
        struct.pack_into(f"<{len(words)}Q", self.bytes, at, *words)

    def flat(self, at, text):
        self.words(at, self.maps["flat"], len(text) << 32)
        self.bytes[at + 16 : at + 16 + len(text)] = text

    def parts(self, kind, length, first, second):
        self.words(PARTS, self.maps[kind], length << 32, first, second)


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    images = {"scope": Image(SCOPE), "name": Image(NAME)}
    for kind, first, second in (
        ("joined", NAME + 1, PATH + 1),
        ("sliced", NAME + 1, 2 << 32),
        ("thin", NAME + 1, 0),
        ("wide", 0x20AC00E9, 0),
    ):
        images[kind] = Image(PARTS)
        images[kind].parts(kind, 4, first, second)
    images["circle"] = Image(PARTS)
    images["circle"].parts("joined", 100, PARTS + 1, PARTS + 1)
    for name, image in images.items():
        (directory / name).write_bytes(image.bytes)


main()
