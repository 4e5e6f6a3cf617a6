#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_python.c: memory of processes with one Python frame, by version.
make_python_seeds.py DIRECTORY"""

import pathlib
import struct
import sys

SELF, INTERPRETER, THREAD, CFRAME, FRAME, CODE, NAME, LINES = (
    0x80, 0x600, 0x700, 0x840, 0x880, 0x940, 0xA80, 0xB00,
)
RUNTIME, CODE_TYPE = 8, 0x40


class Image:
    def __init__(self, minor):
        self.bytes = bytearray(0xC00)
        self.bytes[0], self.bytes[1] = minor - 8, SELF

    def put(self, at, word):
        struct.pack_into("<Q", self.bytes, at, word)

    def objects(self, text_header):
        self.put(SELF + 0x310 + 8, THREAD)
        self.put(CODE + 8, CODE_TYPE)
        self.put(NAME + 16, 4)
        self.put(NAME + 32, 0x65)
        self.bytes[NAME + text_header : NAME + text_header + 4] = b"n.py"
        self.put(LINES + 16, 2)


def old(minor):
    image = Image(minor)
    image.objects(48)
    image.put(RUNTIME + 32, INTERPRETER)
    image.put(INTERPRETER + 8, THREAD)
    image.put(THREAD + 16, INTERPRETER)
    image.put(THREAD + 176, SELF)
    image.put(THREAD + 24, FRAME)
    image.put(THREAD + 48, CFRAME)
    image.put(FRAME + 32, CODE)
    for field in (104, 112):
        image.put(CODE + field, NAME)
    image.put(CODE + 120, LINES)
    return image


def newer(minor, interpreters, threads, thread_id, frame_in_cframe, previous_in_cframe, code):
    image = Image(minor)
    image.objects(48 if minor == 11 else 40)
    image.put(RUNTIME + interpreters, INTERPRETER)
    image.put(INTERPRETER + threads, THREAD)
    image.put(THREAD + 16, INTERPRETER)
    image.put(THREAD + thread_id, SELF)
    image.put(THREAD + 56, CFRAME)
    image.put(CFRAME + frame_in_cframe, FRAME)
    image.put(CFRAME + previous_in_cframe, 0)
    image.put(FRAME + code, CODE)
    image.bytes[FRAME + 68] = 1
    for field in (112, 120, 128):
        image.put(CODE + field, NAME)
    image.put(CODE + 136, LINES)
    return image


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    seeds = {
        "3.8": old(8),
        "3.9": old(9),
        "3.10": old(10),
        "3.11": newer(11, 40, 16, 152, 8, 16, 32),
        "3.12": newer(12, 40, 72, 136, 0, 8, 0),
    }
    # 3.13 says where everything is.
    image = Image(13)
    image.bytes[RUNTIME : RUNTIME + 8] = b"xdebugpy"
    words = [0x030D00F0, 0, 5000, 0, 0x300]  # version, free-threaded; runtime: size, -, interpreters
    words += [4000, 0, 8, 16] + [0] * 9  # interpreter: size, id, next, threads
    words += [300, 0, 8, 16, 72, 152, 160, 0, 0]  # thread
    words += [88, 8, 0, 56, 72, 70]  # frame
    words += [208, 112, 120, 128, 136, 68, 0, 0, 0, 200]  # code
    words += [16, 8]
    for i, word in enumerate(words):
        image.put(RUNTIME + 8 + 8 * i, word)
    image.put(RUNTIME + 0x300, INTERPRETER)
    seeds["3.13"] = image
    for name, seed in seeds.items():
        (directory / name).write_bytes(bytes(seed.bytes))


main()
