# SPDX-License-Identifier: Apache-2.0
"""Shares a control file with faults.c: what fails, after how many calls, and how many did."""

import errno
import mmap
import os
import struct

KINDS = ["none", "write", "sync", "map", "socket", "bpf", "large", "small"]
ERRORS = {
    "write": [errno.ENOSPC, errno.EIO], "sync": [errno.EIO], "map": [errno.ENOMEM],
    "socket": [errno.ECONNRESET, errno.ENOBUFS, errno.EMFILE], "bpf": [errno.EPERM, errno.ENOMEM],
    "large": [errno.ENOMEM], "small": [errno.ENOMEM],
}  # fmt: skip
HEAD = struct.Struct("<5Q")  # kind, position, skip, count, error
SIZE = HEAD.size + 2 * 8 * len(KINDS)


class Faults:
    def __init__(self, path="faults.control"):
        self.path = os.path.abspath(path)
        with open(self.path, "w+b") as file:
            file.truncate(SIZE)
            self.map = mmap.mmap(file.fileno(), SIZE)

    def environment(self):
        return {**os.environ, "LD_PRELOAD": os.environ["FAULTS_LIBRARY"], "FAULTS": self.path}

    def arm(self, kind, skip, count, error):
        self.disarm()
        HEAD.pack_into(self.map, 0, 0, 0, skip, count, error)
        self.map[0:8] = struct.pack("<Q", KINDS.index(kind))

    def disarm(self):
        HEAD.pack_into(self.map, 0, 0, 0, 0, 0, 0)

    def counter(self, kind, table):
        return struct.unpack_from("<Q", self.map, HEAD.size + 8 * (table * len(KINDS) + KINDS.index(kind)))[0]

    def seen(self, kind):
        return self.counter(kind, 0)

    def failed(self, kind):
        return self.counter(kind, 1)


def spread(total, points):
    """Up to `points` places in 0..total-1: all of them, or the first ones and an even spread."""
    if total <= points:
        return list(range(total))
    return sorted({0, 1, 2} | {i * (total - 1) // (points - 1) for i in range(points)})[:points]
