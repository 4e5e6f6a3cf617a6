# SPDX-License-Identifier: Apache-2.0
"""small_pprof.py OUTPUT [FACTOR [SECONDS]]: a profile whose numbers can be checked by hand. Values
are CPU time in ns; two of the stacks belong to spans.

    main;handle;query   30  span a1, trace 01
    main;handle;render  20  span a2, trace 01
    main;idle           50
"""

import sys

from protobuf import field, varint

STACKS = [(["main", "handle", "query"], 30, "a1"), (["main", "handle", "render"], 20, "a2"),
          (["main", "idle"], 50, None)]


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
        sample = field(1, b"".join(varint(names.index(n) + 1) for n in reversed(stack)))
        sample += field(2, varint(value * int(factor)))
        if span:
            sample += field(3, field(1, 3) + field(2, text(span.rjust(16, "0"))))
            sample += field(3, field(1, 4) + field(2, text("1".rjust(32, "0"))))
        samples += field(2, sample)
    tables = b"".join(field(4, field(1, i + 1) + field(4, field(1, i + 1)))
                      for i in range(len(names)))
    tables += b"".join(field(5, field(1, i + 1) + field(2, text(n)))
                       for i, n in enumerate(names))
    kind = field(1, 1) + field(2, 2)
    whole = field(1, kind) + samples + tables + b"".join(field(6, s) for s in strings)
    whole += field(9, int(seconds) * 10**9) + field(10, 10 * 10**9) + field(11, kind)
    open(output, "wb").write(whole + field(12, 10))


if __name__ == "__main__":
    main()
