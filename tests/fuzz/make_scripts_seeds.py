#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_scripts.c: memory of processes with a function of PHP or Ruby, and of one
that publishes a context. make_scripts_seeds.py DIRECTORY"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))

from protobuf import field  # noqa: E402


class Image:
    def __init__(self, kind, at, size=0x2800, minor=0):
        self.bytes = bytearray(size)
        self.bytes[0], self.bytes[1] = kind, minor
        self.put(8, at)

    def put(self, at, *words):
        struct.pack_into(f"<{len(words)}Q", self.bytes, at, *words)

    def text(self, at, text):
        self.bytes[at : at + len(text)] = text


def php(built_in):
    image = Image(0, 0x100)
    image.put(0x100, 1 if built_in else 2, 0x200, 0x300)
    image.put(0x100 + 96, 0x400, 12)
    image.put(0x308, 0x500)
    for at, text in ((0x200, b"total"), (0x400, b"/srv/shop.php"), (0x500, b"Shop")):
        image.put(at + 16, len(text))
        image.text(at + 24, text)
    return image


def ruby(minor, words, lines):
    image = Image(1, 0x1100, minor=minor)
    function, body, file, name, entries, index = 0x1100, 0x1200, 0x1400, 0x1500, 0x1600, 0x1A00
    image.put(function, 0x1A, 0, body)
    struct.pack_into("<II", image.bytes, body, 0, words)
    image.put(body + 64, file)
    image.put(body + 80, name, 7 << (minor & 1) | (minor & 1))
    image.put(body + 120, entries, 0, lines, index)
    for at, text in ((file, b"/srv/app.rb"), (name, b"handle")):
        image.put(at, 5 | (1 << 13 if minor >= 2 else 0) | len(text) << 14, 0, len(text), at + 64)
        image.text(at + (16 if minor < 2 else 64), text)
    for line in range(lines):
        struct.pack_into("<III", image.bytes, entries + 12 * line, 7 + line, 0, 0)
    for word in range(6):
        image.put(index + 8 * word, sum((1 + (word * 9 + i) % lines) << 7 * i for i in range(9)))
    for block in range((max(words - 54, 0) + 511) // 512 if lines > 1 else 0):
        image.put(index + 48 + 80 * block, 1, 0, 0x0101, 0x10)
    return image


def context(cut=0):
    def text(value):
        return field(2, field(1, value))

    array = b"".join(field(1, field(1, key)) for key in (b"http.route", b"user"))
    message = field(1, field(1, field(1, b"service.name") + text(b"shop")))
    message += field(2, field(1, b"threadlocal.schema_version") + text(b"tlsdesc_v1_dev"))
    message += field(2, field(1, b"threadlocal.attribute_key_map") + field(2, field(5, array)))
    image = Image(2, 0x100, 0x400)
    image.text(0x100, b"OTEL_CTX")
    struct.pack_into("<II", image.bytes, 0x108, 2, len(message) - cut)
    image.put(0x110, 1, 0x200)
    image.text(0x200, message)
    return image


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    seeds = {"php": php(False), "php-built-in": php(True), "context": context(), "context-cut": context(3)}
    for minor in range(4):
        seeds[f"ruby-3.{minor}"] = ruby(minor, 40, 5)
        seeds[f"ruby-3.{minor}-long"] = ruby(minor, 1200, 60)
    seeds["ruby-one-line"] = ruby(2, 60000, 1)
    for name, image in seeds.items():
        (folder / name).write_bytes(image.bytes)


if __name__ == "__main__":
    main()
