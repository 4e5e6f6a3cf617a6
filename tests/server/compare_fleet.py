# SPDX-License-Identifier: Apache-2.0
"""compare_fleet.py URL START: pushes profiles of a fleet whose truth is known. Each version runs for
ten minutes on two hosts, in windows of ten seconds at 99 Hz on two cores each: `v1`; `v2`, in which
`parse` is 30% slower; `v3`, which is v1 with twice the requests. Functions vary like counts, from a
fixed seed."""

import concurrent.futures
import random
import sys
import urllib.request

from protobuf import field, varint

WINDOW, PERIOD = 10, 10101010
SHARES = {"parse": 0.2, "encode": 0.15, **{f"step{i}": 0.65 / 20 for i in range(20)}}


def profile(counts, start, requests):
    strings = ["", "cpu", "nanoseconds", "requests", "count"] + list(counts) + ["main"]
    names = list(counts) + ["main"]
    body = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    for i, count in enumerate(counts.values()):
        body += field(2, field(1, varint(i + 1) + varint(len(names)))
                      + field(2, varint(count * PERIOD) + varint(requests if i == 0 else 0)))
    for i, name in enumerate(names):
        body += field(4, field(1, i + 1) + field(4, field(1, i + 1)))
        body += field(5, field(1, i + 1) + field(2, strings.index(name)))
    body += b"".join(field(6, s) for s in strings)
    return body + field(9, start * 10**9) + field(10, WINDOW * 10**9) + field(12, PERIOD)


def send(push):
    urllib.request.urlopen(urllib.request.Request(*push)).read()


def main():
    url, start = sys.argv[1], int(sys.argv[2])
    draw = random.Random(7)
    pushes = []
    for index, version in enumerate(("v1", "v2", "v3")):
        load = 2 if version == "v3" else 1
        for window in range(60):
            for host in ("a", "b"):
                counts = {}
                for name, share in SHARES.items():
                    mean = 99 * WINDOW * share * load * (1.1 if host == "a" else 0.9)
                    if version == "v2" and name == "parse":
                        mean *= 1.3
                    counts[name] = max(0, round(draw.gauss(mean, mean**0.5)))
                at = start + index * 3600 + window * WINDOW
                address = f"{url}/api/v1/push?service=shop&version={version}&host={host}"
                pushes.append((address, profile(counts, at, 1000 * load)))
    with concurrent.futures.ThreadPoolExecutor(16) as threads:  # one commit takes many
        list(threads.map(send, pushes))


if __name__ == "__main__":
    main()
