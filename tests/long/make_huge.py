#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_huge.py FILE: an ELF file of about 200 MB with the unwind information of a browser: 400,000
functions in groups, as linkers get them from object files, each group with code in the usual place
and some far away in the cold part. The code itself is a hole in the file."""

import struct
import sys

FUNCTIONS = 400_000
GROUP = 40
CODE_ADDRESS = 0x1000_0000
FUNCTION_BYTES = 480
COLD_ADDRESS = CODE_ADDRESS + FUNCTIONS * FUNCTION_BYTES
COLD_BYTES = 64
FRAMES_ADDRESS = 0x20_0000
FRAMES_OFFSET = 0x1000

CIE = bytes.fromhex("14000000 00000000 01 7a5200 01 78 10 01 1b 0c0708 9001 0000")


def programs():
    """What compilers write for functions that save 0 to 6 registers and return once or twice."""
    pushes = [0x86, 0x83, 0x8C, 0x8D, 0x8E, 0x8F]
    for count in range(7):
        for returns in (1, 2):
            code = bytearray()
            for i in range(count):
                code += bytes([0x42, 0x0E, 16 + 8 * i, pushes[i], i + 2])
            code += bytes([0x44, 0x0E, 8 * (count + 1) + 64])
            for _ in range(returns):
                code += bytes([0x02, 0x60, 0x0A])
                for i in reversed(range(count + 1)):
                    code += bytes([0x41, 0x0E, 8 + 8 * i])
                code += bytes([0x41, 0x0B])
            yield bytes(code)


def frames():
    """All of .eh_frame."""
    out = bytearray(CIE)
    choices = list(programs())
    for number in range(FUNCTIONS):
        cold = number % GROUP >= GROUP - 4
        start = COLD_ADDRESS + number * COLD_BYTES if cold else CODE_ADDRESS + number * FUNCTION_BYTES
        length = COLD_BYTES - 8 if cold else FUNCTION_BYTES - 16
        program = choices[2] if cold else choices[number * 7919 % len(choices)]
        body = bytearray(13) + program
        body += bytes(-(len(body) + 4) % 8)
        here = len(out)
        struct.pack_into("<IiI", body, 0, here + 4, start - (FRAMES_ADDRESS + here + 8), length)
        out += struct.pack("<I", len(body)) + body
    return out + bytes(4)


def main():
    content = frames()
    code_offset = FRAMES_OFFSET + (len(content) + 0xFFFF) // 0x1_0000 * 0x1_0000
    code_bytes = FUNCTIONS * (FUNCTION_BYTES + COLD_BYTES)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 512, 0, 64, 56, 2, 64, 3, 2
    )
    segments = struct.pack(
        "<IIQQQQQQ", 1, 4, FRAMES_OFFSET, FRAMES_ADDRESS, 0, len(content), len(content), 4096
    ) + struct.pack("<IIQQQQQQ", 1, 5, code_offset, CODE_ADDRESS, 0, code_bytes, code_bytes, 4096)
    names = b"\0.eh_frame\0.shstrtab\0"
    sections = (
        bytes(64)
        + struct.pack("<IIQQQQIIQQ", 1, 1, 2, FRAMES_ADDRESS, FRAMES_OFFSET, len(content), 0, 0, 8, 0)
        + struct.pack("<IIQQQQIIQQ", 11, 3, 0, 0, 0x400, len(names), 0, 0, 1, 0)
    )
    with open(sys.argv[1], "wb") as file:
        file.write(header + segments)
        file.seek(512)
        file.write(sections)
        file.seek(0x400)
        file.write(names)
        file.seek(FRAMES_OFFSET)
        file.write(content)
        file.truncate(code_offset + code_bytes)


main()
