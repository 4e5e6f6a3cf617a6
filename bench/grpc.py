#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What gRPC costs beside HTTP/1.1: see README.md, and grpc.sh, which calls this. h2load sends the
same OTLP export over and over both ways; the server's CPU time is compared."""

import argparse
import contextlib
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import h2
from protobuf import field, varint

ROWS = 2000
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
MIB = 1 << 20


def export(rows):
    """An export of that many stacks, 20 frames deep, of 500 functions."""
    chance = random.Random(1)
    strings = ["", "cpu", "nanoseconds"] + [f"function_{i}" for i in range(500)]
    dictionary = b"".join([field(1, b""), field(2, b""), field(3, b""), field(4, b""), field(6, b""), field(7, b"")])
    for i in range(500):
        dictionary += field(2, field(3, field(1, i + 1))) + field(3, field(1, i + 3))
    dictionary += b"".join(field(5, text) for text in strings)
    now, samples = int(time.time()) * 10**9, b""
    for i in range(rows):
        dictionary += field(7, field(1, b"".join(varint(1 + chance.randrange(500)) for _ in range(20))))
        samples += field(2, field(1, i + 1) + field(4, varint(1 + chance.randrange(10**9))))
    profile = (field(1, field(1, 1) + field(2, 2)) + samples + varint(3 << 3 | 1) + struct.pack("<Q", now) +
               field(4, 10**10) + field(5, field(1, 1) + field(2, 2)) + field(6, 10**7))
    resource = field(1, field(1, field(1, "service.name") + field(2, field(1, "bench"))))
    return field(1, resource + field(2, field(2, profile))) + field(2, dictionary)


@contextlib.contextmanager
def server(assay):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-bench-"))
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([assay, "server", "--listen", "127.0.0.1:0", "--data", folder / "store"], stderr=log)
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"serving on (\S+)", (folder / "log").read_text())):
            if time.monotonic() > until:
                sys.exit("The server did not start.")
            time.sleep(0.05)
        yield found[1], process.pid, folder
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def cpu_seconds(pid):
    """Of all threads, ended ones included, without maintenance, which works off what was stored."""
    total = time.clock_gettime_ns(~pid << 3 | 2)  # the CPU clock of the process
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text() == "maintenance\n":
                total -= int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def memory(pid, name="VmRSS"):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(name + r":\s+(\d+)", text)[1]) * 1024


def load(url, folder, body, grpc, count, clients):
    """Sends the body so often over so many connections, one request at a time on each."""
    path, headers = folder / "body", []
    path.write_bytes((b"\1" + struct.pack(">I", len(body)) + body) if grpc else body)
    if grpc:
        headers = ["-H", "content-type: application/grpc", "-H", "te: trailers", "-H", "grpc-encoding: zstd"]
    else:
        headers = ["--h1", "-H", "content-type: application/x-protobuf", "-H", "content-encoding: zstd"]
    target = url + (EXPORT if grpc else "/v1development/profiles")
    out = subprocess.run(["h2load", "-n", str(count), "-c", str(clients), "-m", "1", "-d", path, *headers, target],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    done = re.search(r"status codes: (\d+) 2xx", out)
    if not done or int(done[1]) != count:
        sys.exit(f"Not all pushes were taken:\n{out}")


def measure(assay, body, count, rounds):
    """Seconds of CPU for each way, taken in turns on one server."""
    best = {False: [], True: []}
    with server(assay) as (url, pid, folder):
        for grpc in (False, True):
            load(url, folder, body, grpc, 20, 4)
        for _ in range(rounds):
            for grpc in (False, True):
                before = cpu_seconds(pid)
                load(url, folder, body, grpc, count, 4)
                best[grpc].append(cpu_seconds(pid) - before)
    return {way: sorted(times)[len(times) // 2] for way, times in best.items()}


def idle_bytes(assay, h1):
    with server(assay) as (url, pid, _):
        address = url[len("http://"):]
        load_one = h2.Connection(address)
        load_one.request("GET", "/ready")
        before, kept = memory(pid), []
        for _ in range(1000):
            connection = h2.Connection(address, preface=not h1)
            if h1:
                connection.send(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
                connection.socket.recv(4096)
            else:
                connection.request("GET", "/ready")
            kept.append(connection)
        after = memory(pid)
        for connection in kept:
            connection.close()
        return (after - before) / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    missed = 0

    def bar(held, text):
        nonlocal missed
        missed += not held
        print(f"{'held  ' if held else 'MISSED'}  {text}", flush=True)

    body = subprocess.run(["zstd", "-qc", "-3"], input=export(ROWS), stdout=subprocess.PIPE, check=True).stdout
    count, rounds = (100, 3) if arguments.quick else (300, 7)
    times = measure(arguments.assay, body, count, rounds)
    rate = {way: count * ROWS / seconds for way, seconds in times.items()}
    print(f"        {len(body)} bytes a push, {ROWS} rows; median of {rounds} rounds of {count} pushes, taken in turns")
    print(f"        HTTP/1.1: {rate[False] / 1000:,.0f}k rows/s per core")
    bar(rate[True] >= 0.9 * rate[False],
        f"gRPC:     {rate[True] / 1000:,.0f}k rows/s per core, {100 * rate[True] / rate[False]:.0f}% of HTTP/1.1 (bar: 90%)")
    with server(arguments.assay) as (url, pid, folder):
        small = subprocess.run(["zstd", "-qc", "-3"], input=export(200), stdout=subprocess.PIPE, check=True).stdout
        load(url, folder, small, True, 1000 if arguments.quick else 3000, 1000)
        peak = memory(pid, "VmHWM")
    bar(peak <= 256 * MIB, f"1,000 agents on persistent connections: {peak / MIB:.0f} MiB at most (bar: 256 MiB)")
    print(f"        an idle connection: {idle_bytes(arguments.assay, False) / 1024:.1f} KiB of HTTP/2, "
          f"{idle_bytes(arguments.assay, True) / 1024:.1f} KiB of HTTP/1.1")
    sys.exit(1 if missed else 0)


main()
