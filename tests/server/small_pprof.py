# SPDX-License-Identifier: Apache-2.0
"""small_pprof.py OUTPUT [FACTOR [SECONDS]]: a profile whose numbers can be checked by hand. Values
are CPU time in ns; two of the stacks belong to spans.

    main;handle;query   30  span a1, trace 01
    main;handle;render  20  span a2, trace 01
    main;idle           50
"""

import sys

STACKS = [(["main", "handle", "query"], 30, "a1"), (["main", "handle", "render"], 20, "a2"),
          (["main", "idle"], 50, None)]


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def main():
    output = sys.argv[1]
    factor = sys.argv[2] if len(sys.argv) > 2 else "1"
    seconds = sys.argv[3] if len(sys.argv) > 3 else "1794700000"
    strings = ["", "cpu", "nanoseconds", "span_id", "trace_id"]

    def text(value):
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    names, samples = [], b""
    for stack, value, span in STACKS:
        for name in stack:
            if name not in names:
                names.append(name)
        sample = message(1, b"".join(varint(names.index(n) + 1) for n in reversed(stack)))
        sample += message(2, varint(value * int(factor)))
        if span:
            sample += message(3, number(1, 3) + number(2, text(span.rjust(16, "0"))))
            sample += message(3, number(1, 4) + number(2, text("1".rjust(32, "0"))))
        samples += message(2, sample)
    tables = b"".join(message(4, number(1, i + 1) + message(4, number(1, i + 1)))
                      for i in range(len(names)))
    tables += b"".join(message(5, number(1, i + 1) + number(2, text(n)))
                       for i, n in enumerate(names))
    kind = number(1, 1) + number(2, 2)
    whole = message(1, kind) + samples + tables + b"".join(message(6, s) for s in strings)
    whole += number(9, int(seconds) * 10**9) + number(10, 10 * 10**9) + message(11, kind)
    open(output, "wb").write(whole + number(12, 10))


if __name__ == "__main__":
    main()
