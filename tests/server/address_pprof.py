# SPDX-License-Identifier: Apache-2.0
"""address_pprof.py OUTPUT BINARY [HOURS-AGO [BUILD-ID]]: a profile of addresses only, as a sender without
symbols makes it: every instruction of busy_outer, called by the first one of main behind its call,
each 10 ns of CPU time. Mappings and the build ID are those of the binary, unless another is given."""

import re
import subprocess
import sys
import time

from protobuf import field

BASE = 0x555500000000


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def main():
    output, binary = sys.argv[1:3]
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", binary))
    build_id = sys.argv[4] if len(sys.argv) > 4 else build_id.group(1)
    hours = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    segment = re.search(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x(\w+) R E", run("readelf", "-lW", binary))
    offset, address, size = (int(part, 16) for part in segment.groups())
    code = run("objdump", "-d", "--no-show-raw-insn", binary)
    body = re.search(r"<busy_outer>:\n(.*?)\n\n", code, re.S).group(1)
    leaves = [int(line.split(":")[0], 16) for line in body.splitlines()]
    caller = int(re.search(r"(\w+):\s+call\s+\w+ <busy_outer>", code).group(1), 16) + 4
    start = BASE + address // 4096 * 4096
    mapping = (field(1, 1) + field(2, start) + field(3, start + (size + address % 4096 + 4095) // 4096 * 4096)
               + field(4, offset // 4096 * 4096) + field(5, 3) + field(6, 4))
    strings = ["", "cpu", "nanoseconds", binary, build_id]
    out = field(1, field(1, 1) + field(2, 2)) + field(3, mapping)
    for index, leaf in enumerate([caller] + leaves):
        out += field(4, field(1, index + 1) + field(2, 1) + field(3, BASE + leaf))
        if index:
            out += field(2, field(1, bytes([index + 1, 1])) + field(2, bytes([10])))
    assert len(leaves) < 120, "ids of one byte"
    out += b"".join(field(6, text) for text in strings)
    out += field(9, time.time_ns() - hours * 3600 * 10**9) + field(10, 10**10) + field(11, field(1, 1) + field(2, 2)) + field(12, 10)
    with open(output, "wb") as file:
        file.write(out)
    print(len(leaves))


main()
