# SPDX-License-Identifier: Apache-2.0
"""window_pprof.py OUTPUT TYPE UNIT START SECONDS STACK=VALUE[,LABEL=TEXT]...: a profile of one window;
a stack is frames from the outermost on, separated by ';'. SECONDS 0: it says no duration."""

import sys

from protobuf import field, varint


def main():
    output, kind, unit, start, seconds, *samples = sys.argv[1:]
    strings, names, body = ["", kind, unit], [], b""

    def text(value):
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    for sample in samples:
        first, *labels = sample.split(",")
        stack, value = first.split("=")
        frames = stack.split(";")
        names += [name for name in frames if name not in names]
        one = field(1, b"".join(varint(names.index(n) + 1) for n in reversed(frames)))
        one += field(2, varint(int(value)))
        for label in labels:
            key, value = label.split("=")
            one += field(3, field(1, text(key)) + field(2, text(value)))
        body += field(2, one)
    for i, name in enumerate(names):
        body += field(4, field(1, i + 1) + field(4, field(1, i + 1)))
        body += field(5, field(1, i + 1) + field(2, text(name)))
    whole = field(1, field(1, 1) + field(2, 2)) + body + b"".join(field(6, s) for s in strings)
    whole += field(9, int(start) * 10**9)
    if int(seconds):
        whole += field(10, int(seconds) * 10**9)
    open(output, "wb").write(whole)


if __name__ == "__main__":
    main()
