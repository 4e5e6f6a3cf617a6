#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory_mix.py URL ROUNDS: hostile pushes by every route at once, nothing in them seen before. Prints
a line for each status; ends with 1 when the server gave another answer than stored or refused, or
lost something that it had acknowledged."""

import base64
import collections
import http.client
import json
import random
import sys
import threading
import time
import urllib.parse

from protobuf import field, varint

DAY_S = 86400
ROWS = 400
DEPTH = 24
PROTOBUF = {"Content-Type": "application/x-protobuf"}
PROTO = {"Content-Type": "application/proto"}
JSON = {"Content-Type": "application/json"}
counts, lock = collections.Counter(), threading.Lock()


class Mix:
    """One sender's bodies: each of ROWS samples that count 1 ns each."""

    def __init__(self, number):
        self.number, self.service, self.chance, self.made = number, f"mix{number}", random.Random(number), 0

    def name(self):
        self.made += 1
        return f"mix{self.number}_function_with_a_long_name_{self.made}"

    def pprof(self, labels=0, links=False, mappings=1):
        strings = {"": 0}

        def text(s):
            return strings.setdefault(s, len(strings))

        kind = field(1, text("cpu")) + field(2, text("nanoseconds"))
        parts = [field(1, kind)]
        for i in range(mappings):
            build_id = f"{self.chance.getrandbits(160):040x}"
            parts.append(field(3, field(1, i + 1) + field(2, i << 24) + field(3, (i + 1) << 24) +
                               field(5, text(f"/bin/{build_id}")) + field(6, text(build_id))))  # fmt: skip
        frames = 0
        for row in range(ROWS):
            ids = []
            for _ in range(DEPTH // 4 if row % 4 else DEPTH):
                frames += 1
                at = self.chance.randrange(mappings)
                parts.append(field(5, field(1, frames) + field(2, text(self.name()))))
                parts.append(field(4, field(1, frames) + field(2, at + 1) + field(3, (at << 24) + frames) +
                                   field(4, field(1, frames))))  # fmt: skip
                ids.append(varint(frames))
            sample = field(1, b"".join(ids)) + field(2, varint(1))
            if labels:
                sample += field(3, field(1, text("who")) + field(2, text(self.name() if row < labels else "same")))
            if links:
                for key, bits in (("trace_id", 128), ("span_id", 64)):
                    sample += field(3, field(1, text(key)) +
                                    field(2, text(f"{self.chance.getrandbits(bits):0{bits // 4}x}")))  # fmt: skip
            parts.append(field(2, sample))
        parts += [field(6, s) for s in strings]
        return b"".join(parts) + field(9, self.time_s * 10**9) + field(10, 10**10) + field(11, kind) + field(12, 1)

    def folded(self):
        return "".join(";".join(self.name() for _ in range(DEPTH)) + " 1\n" for _ in range(ROWS)).encode()

    def otlp(self):
        strings = ["", "cpu", "nanoseconds"]
        table = [field(n, b"") for n in (1, 2, 3, 4, 6, 7)]
        samples, frames = [], 0
        for row in range(ROWS):
            ids = []
            for _ in range(DEPTH):
                frames += 1
                strings.append(self.name())
                table.append(field(2, field(3, field(1, frames))) + field(3, field(1, len(strings) - 1)))
                ids.append(varint(frames))
            table.append(field(7, field(1, b"".join(ids))))
            samples.append(field(2, field(1, row + 1) + field(4, varint(1))))
        table += [field(5, s) for s in strings]
        at = (self.time_s * 10**9).to_bytes(8, "little")
        profile = (field(1, field(1, 1) + field(2, 2)) + b"".join(samples) + varint(3 << 3 | 1) + at +
                   field(4, 10**10) + field(5, field(1, 1) + field(2, 2)) + field(6, 1))  # fmt: skip
        # Another service: agents and pushes of one service would be two observers of the same.
        resource = field(1, field(1, field(1, "service.name") + field(2, field(1, self.service + "-agent"))))
        return field(1, resource + field(2, field(2, profile))) + field(2, b"".join(table))

    def pair(self):
        return field(1, "service_name") + field(2, self.service), field(1, "__name__") + field(2, "process_cpu")

    def request(self):
        """Path, headers and body of the next push: now, late, or out of order."""
        now = int(time.time())
        self.time_s = now - self.chance.choice([10, 20, self.chance.randrange(3600), self.chance.randrange(5 * DAY_S)])
        push = f"/api/v1/push?service={self.service}"
        kind = self.chance.randrange(7)
        if kind == 0:
            query = f"format=folded&name={self.service}&from={self.time_s}&until={self.time_s + 10}&sampleRate=1000000000"
            return "/ingest?" + query, {}, self.folded()
        if kind == 1:
            return push, {}, self.pprof(labels=ROWS // 4)
        if kind == 2:
            return push, {}, self.pprof(links=True)
        if kind == 3:
            return push, {}, self.pprof(mappings=100)
        if kind == 4:
            return "/v1development/profiles", PROTOBUF, self.otlp()
        service, name = self.pair()
        if kind == 5:
            raw = base64.b64encode(self.pprof()).decode()
            series = {"labels": [{"name": "service_name", "value": self.service},
                                 {"name": "__name__", "value": "process_cpu"}],
                      "samples": [{"rawProfile": raw}]}  # fmt: skip
            return "/push.v1.PusherService/Push", JSON, json.dumps({"series": [series]}).encode()
        series = field(1, field(1, service) + field(1, name)) + field(2, field(1, self.pprof()))
        return "/api/profiles/writeraw", PROTO, field(2, series)


def exchange(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def send(address, mix, rounds, stored):
    connection = http.client.HTTPConnection(address, timeout=300)
    for _ in range(rounds):
        path, headers, body = mix.request()
        status, text = exchange(connection, "POST", path, body, headers)
        service = mix.service + ("-agent" if path.startswith("/v1dev") else "")
        stored[service] += ROWS if status == 200 else 0
        with lock:
            counts[path.split("?")[0], status] += 1
            if status not in (200, 413, 429, 503):
                counts["wrong", text[:200].decode()] += 1


def total(address, service):
    """Sum of all that is stored of a service, once the server has the memory to say it."""
    until = time.monotonic() + 300
    query = urllib.parse.urlencode({"query": f'cpu{{service="{service}"}}', "from": "now-10d", "to": "now+1d",
                                    "step": "1d"})  # fmt: skip
    while True:
        status, text = exchange(http.client.HTTPConnection(address, timeout=300), "GET", "/api/v1/timeseries?" + query)
        if status != 503 or time.monotonic() > until:
            break
        time.sleep(0.2)
    if status == 404:
        return 0
    if status != 200:
        sys.exit(f"A query of {service} got {status}: {text[:300]}")
    return sum(point[1] for series in json.loads(text)["series"] for point in series["points"])


def main():
    address, rounds = sys.argv[1].removeprefix("http://"), int(sys.argv[2])
    mixes, stored = [Mix(i) for i in range(8)], collections.Counter()
    threads = [threading.Thread(target=send, args=(address, mix, rounds, stored)) for mix in mixes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (path, status), count in sorted(counts.items(), key=str):
        print(f"{count:6} {path} {status}")
    wrong = any(key[0] == "wrong" for key in counts)
    for service, count in stored.items():
        found = total(address, service)
        if found != count:
            print(f"{service}: {count} acknowledged, {found} found")
            wrong = True
    if not any(status == 200 for _, status in counts):
        sys.exit("The server stored nothing.")
    sys.exit(wrong)


main()
