#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_hotspot.c: memory of processes with one method, compiled and interpreted.
make_hotspot_seeds.py DIRECTORY"""

import pathlib
import struct
import sys

METHOD, CONST, POOL, TAGS, CLASS = 0x100, 0x200, 0x300, 0x400, 0x480
CLASS_NAME, METHOD_NAME, NAME = 0x500, 0x540, 0x580
NMETHOD, SCOPES, PCS, METADATA, STACK = 0x1010, 0x1600, 0x1640, 0x15F8, 0x3000


class Image:
    def __init__(self, new):
        self.bytes = bytearray(0x3200)
        self.bytes[0] = new
        self.method()
        self.compiled(new)
        # A compiled method, called by the interpreter.
        self.put(STACK, "<Q", 0x2900)
        self.put(STACK + 64 - 24, "<Q", METHOD)
        self.put(STACK + 64 - 64, "<Q", 0x2900)
        self.put(STACK + 64 + 8, "<Q", 0)

    def put(self, at, form, *values):
        struct.pack_into(form, self.bytes, at, *values)

    def symbol(self, at, text):
        self.put(at, "<H", len(text))
        self.bytes[at + 6 : at + 6 + len(text)] = text

    def method(self):
        self.put(METHOD + 8, "<Q", CONST)
        self.put(CONST + 8, "<Q", POOL)
        self.put(CONST + 24, "<IH", 16, 1)
        self.put(CONST + 32, "<HH", 8, 3)
        self.bytes[CONST + 56 : CONST + 61] = bytes([255, 1, 21, 33, 0])
        self.put(POOL + 8, "<Q", TAGS)
        self.put(POOL + 24, "<Q", CLASS)
        self.put(POOL + 54, "<H", 3)
        self.put(POOL + 60, "<I", 8)
        self.put(POOL + 72 + 24, "<Q", METHOD_NAME)
        self.bytes[TAGS + 4 + 3] = 1
        self.put(CLASS + 24, "<Q", CLASS_NAME)
        self.symbol(CLASS_NAME, b"shop/Till")
        self.symbol(METHOD_NAME, b"sell")

    def compiled(self, new):
        self.bytes[0xF00:0xF30] = bytes(range(0x30))
        self.bytes[NAME : NAME + 8] = b"nmethod\0"
        self.put(NMETHOD + 96, "<Q", NAME)
        self.put(NMETHOD + 28, "<I", 2)
        self.put(NMETHOD + 32, "<Q", 0x1400)
        self.put(NMETHOD + 112, "<Q", METHOD)
        self.put(NMETHOD + 304, "<I", 5)
        self.put(METADATA, "<Q", METHOD)
        one = 1 if new else 0
        self.bytes[SCOPES : SCOPES + 7] = bytes(n + one for n in (0, 0, 1, 1, 1, 1, 5))
        self.put(PCS, "<12i", -1, 0, 0, 0, 64, 4, 0, 0, 99999, 0, 0, 0)
        if new:  # places, then scopes, in memory of their own
            self.bytes[0x1700:0x1730] = self.bytes[PCS : PCS + 48]
            self.bytes[0x1730:0x1737] = self.bytes[SCOPES : SCOPES + 7]
            self.put(NMETHOD + 120, "<QII", 0x1700, 0x37, 0x30)
            self.put(NMETHOD + 136, "<QII", METADATA, 8, 0)
            self.put(NMETHOD + 268, "<I", 0)
        else:
            self.put(NMETHOD + 120, "<Q", SCOPES)
            self.put(NMETHOD + 260, "<I", METADATA - NMETHOD)
            self.put(NMETHOD + 268, "<II", PCS - NMETHOD, PCS + 48 - NMETHOD)


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, new in (("17", 0), ("25", 1)):
        (directory / name).write_bytes(Image(new).bytes)
    endless = Image(0)
    for i in range(12):
        endless.put(8 + 8 * i, "<Q", 0)
    endless.put(8, "<QQ", 0x600, 16)
    for at in range(0x600, 0xF00, 8):
        endless.put(at, "<Q", 0x600)
    (directory / "endless-table").write_bytes(endless.bytes)


main()
