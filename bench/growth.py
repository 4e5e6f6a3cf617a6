#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the server's cost grows: see README.md, and growth.sh, which calls this. Each row measures two
sizes of one thing in one run, so that a ratio says more than either figure."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

from protobuf import field, varint

MIB = 1 << 20
ROW = "{:<56}{:>12}{:>12}{:>9}  {}"


class Server:
    """A server with a data directory of its own; its cost comes from /proc."""

    def __init__(self, bench, memory="1G", cpus=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-growth-"))
        config = self.folder / "server.yaml"
        config.write_text("retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n")
        command = [bench.assay, "server", "--listen", "127.0.0.1:0", "--config", config,
                   "--data", self.folder / "data", "--memory-limit", memory]  # fmt: skip
        if cpus:
            command = ["taskset", "-c", cpus, *command]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(command, stderr=log)
        self.proc = pathlib.Path(f"/proc/{self.process.pid}")
        until = time.monotonic() + 60
        while not (found := re.search(r"serving on http://(\S+)", self.log())):
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("The server did not start: " + self.log())
            time.sleep(0.05)
        self.address = found[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def log(self):
        return (self.folder / "log").read_text()

    def peak_bytes(self):
        return int(re.search(r"VmHWM:\s+(\d+)", (self.proc / "status").read_text())[1]) * 1024

    def thread_seconds(self):
        """Name and CPU time of each thread, by the scheduler's own account."""
        for task in (self.proc / "task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield (task / "comm").read_text().strip(), int((task / "schedstat").read_text().split()[0]) / 1e9

    def maintenance_seconds(self):
        return sum(seconds for name, seconds in self.thread_seconds() if name == "maintenance")

    def cpu_seconds(self):
        return sum(seconds for name, seconds in self.thread_seconds() if name not in ("maintenance", "symbols"))

    def metrics(self):
        text = self.get("/metrics").decode()
        return {m[1]: float(m[2]) for m in re.finditer(r"^(assay_\S+) (\S+)$", text, re.MULTILINE)}

    def request(self, connection, method, path, body=None):
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def get(self, path):
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=120)) as connection:
            status, body = self.request(connection, "GET", path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:200]}")
        return body

    def ask(self, path, tries=5, **query):
        """The server's CPU time for a query in ms, the median, and its answer; or why not."""
        times = []
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=300)) as connection:
            for _ in range(tries + 1):
                before = self.cpu_seconds()
                status, body = self.request(connection, "GET", path + "?" + urllib.parse.urlencode(query))
                times.append((self.cpu_seconds() - before) * 1000)
                if status != 200:
                    return None, f"{status} {body[:160].decode()}"
        return statistics.median(times[1:]), body  # the first one reads what is not in memory yet

    def files_bytes(self, pattern):
        return sum(path.stat().st_blocks * 512 for path in (self.folder / "data").rglob(pattern))

    def settle(self, seconds=90):
        """Waits until maintenance has nothing to do."""
        before, quiet, until = None, 0, time.monotonic() + seconds
        while time.monotonic() < until and quiet < 7:
            now = self.metrics()
            state = (now["assay_store_fresh_blocks"], *(now.get(f'assay_store_bytes{{tier="{tier}"}}')
                                                        for tier in ("raw", "10m", "hour")))
            quiet = quiet + 1 if state == before else 0
            before = state
            time.sleep(1)


class Bench:
    def __init__(self, arguments):
        self.assay = os.path.join(arguments.build, "assay")
        self.build = arguments.build
        self.full = arguments.full
        self.missed = 0

    def row(self, what, small, large, growth, bar="", held=True):
        self.missed += not held
        verdict = f"{'held' if held else 'MISSED'}: {bar}" if bar else ""
        print(ROW.format(what, small, large, growth, verdict), flush=True)

    def simulate(self, server, *options, timeout=None):
        command = [self.assay, "simulate", "--server", "http://" + server.address, "--server-pid",
                   str(server.process.pid), "--json", *map(str, options)]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, _ = process.communicate()
        return json.loads(out) if out else None


def pprof(stacks, depth, chance, names=1000):
    """A CPU profile of that many random stacks of that depth."""
    parts = [field(1, field(1, 1) + field(2, 2)), field(6, ""), field(6, "cpu"), field(6, "nanoseconds")]
    for i in range(names):
        parts.append(field(6, f"function_{i}"))
        parts.append(field(5, field(1, i + 1) + field(2, i + 3)))
        parts.append(field(4, field(1, i + 1) + field(4, field(1, i + 1))))
    ids = [varint(i + 1) for i in range(names)]
    for _ in range(stacks):
        parts.append(field(2, field(1, b"".join(chance.choices(ids, k=depth))) + field(2, varint(10_000_000))))
    now = time.time_ns()
    return b"".join(parts) + field(9, now) + field(10, 10**10) + field(11, field(1, 1) + field(2, 2)) + field(12, 10**7)


def push(server, connection, body, service):
    return server.request(connection, "POST", "/api/v1/push?" + urllib.parse.urlencode({"service": service}), body)


# ---- rows ----


def measure_memory(bench):
    """Resident memory while nothing but new stacks comes, against the limit."""
    for limit in (64, 256, 1024) if bench.full else (64, 256):
        with Server(bench, f"{limit}M") as server:
            rows = 400 if limit == 64 else 1200
            bench.simulate(server, "--agents", 32, "--services", 8, "--services-per-agent", 1,
                           "--rows", 1000, "--stacks-known", 0, "--compression", "zstd", "--fast",
                           "--rounds", rows // 32 + 1, timeout=60)  # fmt: skip
            metrics = server.metrics()
            peak = server.peak_bytes() / MIB
        stored = metrics["assay_store_samples"]
        bench.row(f"memory_limit {limit} MiB, {rows}k rows of new stacks: peak MiB", limit, f"{peak:.0f}",
                  f"{peak / limit:.2f}", "at most 1.10", peak <= limit * 1.1)  # fmt: skip
        print(f"    {stored:,.0f} rows stored")


def measure_cores(bench):
    """Rows per second of a server on one core and on two; senders have their bodies prepared."""
    rates = {}
    if os.cpu_count() < 2:
        print("    one processor: left out")
        return
    for cpus in ("0", "0,1"):
        best = 0
        for _ in range(3):
            with Server(bench, cpus=cpus) as server:
                result = bench.simulate(
                    server, "--agents", 200, "--services", 100, "--services-per-agent", 10, "--rows", 100,
                    "--compression", "zstd", "--fast", "--prime", "--prepare", "--rounds", 6)  # fmt: skip
            best = max(best, result["rows_per_second"])
        rates[cpus] = best
    growth = rates["0,1"] / rates["0"]
    bench.row("rows/s on 1 and 2 cores, the senders beside", f"{rates['0']:,.0f}", f"{rates['0,1']:,.0f}",
              f"{growth:.2f}", "at least 1.7", growth >= 1.7)  # fmt: skip


def maintenance(bench, *options, trickle=False):
    """µs of maintenance for each row, until it has nothing more to do."""
    with Server(bench) as server:
        result = bench.simulate(server, "--services", 20, "--services-per-agent", 10, "--compression",
                                "zstd", *options)  # fmt: skip
        server.settle()
        rows = server.metrics()["assay_store_samples"]
        return server.maintenance_seconds() * 1e6 / rows, rows, result


def measure_maintenance(bench):
    """CPU time of maintenance for each row: two volumes, and two paces of one volume."""
    day = ["--from", "now-6h", "--interval", "30s"]
    small, rows, _ = maintenance(bench, *day, "--agents", 5, "--rows", 20, "--duration", "6h")
    large, more, _ = maintenance(bench, *day, "--agents", 40, "--rows", 20, "--duration", "6h")
    bench.row(f"maintenance us/row, {rows / 1e6:.2f}M and {more / 1e6:.2f}M rows", f"{small:.2f}", f"{large:.2f}",
              f"{large / small:.2f}", "at most 0.5", max(small, large) <= 0.5)  # fmt: skip
    slow, rows, _ = maintenance(bench, *day, "--agents", 5, "--rows", 20, "--duration", "6h", "--rate", 60)
    bench.row(f"maintenance us/row, {rows / 1e6:.2f}M rows at once and slowly", f"{small:.2f}", f"{slow:.2f}",
              f"{slow / small:.2f}", "at most 0.5", slow <= 0.5)  # fmt: skip


def measure_series(bench):
    """Queries over ten times the series whose answers have the same size."""
    cases = [
        ("flame graph of all", "/api/v1/flame", {"query": "cpu", "from": "now-1h"}),
        ("time series of all", "/api/v1/timeseries", {"query": "cpu", "from": "now-1h"}),
        ("flame graph of one service", "/api/v1/flame", {"query": 'cpu{service="service-001"}', "from": "now-1h"}),
        ("time series by host", "/api/v1/timeseries", {"query": "cpu", "from": "now-1h", "group_by": "host"}),
    ]  # fmt: skip
    sizes = (20, 200) if bench.full else (4, 40)
    times = []
    for thousands in sizes:
        with Server(bench) as server:
            bench.simulate(server, "--agents", thousands * 10, "--services", 100, "--services-per-agent",
                           100, "--rows", 3, "--stacks", 50, "--stacks-known", 1, "--compression", "zstd",
                           "--fast", "--rounds", 1)  # fmt: skip
            server.settle(30)
            times.append([server.ask(path, **query) for _, path, query in cases])
            resident = server.peak_bytes() / MIB
            print(f"    {thousands}k series: {resident:.0f} MiB resident at most")
    for i, (what, *_) in enumerate(cases):
        (small, body), (large, other) = times[0][i], times[1][i]
        if small is None or large is None:
            bench.row(what, "refused" if small is None else f"{small:.1f}", "refused", "", "an answer", False)
            print("    " + str(body if small is None else other)[:160])
            continue
        bench.row(f"{what}, CPU ms, {sizes[0]}k and {sizes[1]}k series", f"{small:.1f}", f"{large:.1f}",
                  f"{large / small:.2f}", "at most 2", large <= 2 * small)  # fmt: skip


def measure_week(bench):
    """Seven days: the table of functions and the comparison beside the flame graph."""
    with Server(bench) as server:
        bench.simulate(server, "--agents", 10, "--services", 20, "--services-per-agent", 4, "--rows",
                       50 if not bench.full else 200, "--interval", "15m", "--from", "now-7d", "--duration",
                       "7d", "--compression", "zstd")  # fmt: skip
        server.settle()
        rows = server.metrics()["assay_store_samples"]
        week = {"query": "cpu", "from": "now-7d"}
        flame, _ = server.ask("/api/v1/flame", 10, **week)
        top, why = server.ask("/api/v1/top", 10, **week)
        diff, other = server.ask("/api/v1/diff", 10, query="cpu", **{"from": "now-84h"}, to="now", base_query="cpu",
                                 base_from="now-7d", base_to="now-84h")  # fmt: skip
        for what, taken, bar, reason in (("top", top, 1.2, why), ("diff", diff, 2.5, other)):
            if taken is None:
                bench.row(what, "", "refused", "", "an answer", False)
                print("    " + reason)
                continue
            bench.row(f"flame graph and {what} of 7 days, {rows / 1e6:.2f}M rows, CPU ms", f"{flame:.1f}",
                      f"{taken:.1f}", f"{taken / flame:.2f}", f"at most {bar}", taken <= bar * flame)  # fmt: skip


def measure_depth(bench):
    """Deep stacks: all are stored or cut with a mark, and cost is linear in frames."""
    chance, times = random.Random(1), {}
    for depth in (100, 1000, 5000):
        with Server(bench) as server:
            with contextlib.closing(http.client.HTTPConnection(server.address, timeout=300)) as connection:
                statuses = []
                for i in range(10):
                    status, body = push(server, connection, pprof(100, depth, chance), "deep")
                    statuses.append(status)
                    if status != 200:
                        print(f"    depth {depth}: {status} {body[:150].decode()}")
                        break
            taken, why = server.ask("/api/v1/flame", query='cpu{service="deep"}', **{"from": "now-1h"})
            stored = statuses.count(200)
        if taken is None:
            print(f"    flame graph of depth {depth}: {why}")
        times[depth] = taken or float("nan")
        bench.row(f"10 pushes of 100 stacks of {depth} frames: taken", 10, stored, "", "all", stored == 10)
    growth = times[1000] / times[100]
    bench.row("flame graph of 1,000 stacks of 100 and 1,000 frames, CPU ms", f"{times[100]:.1f}", f"{times[1000]:.1f}",
              f"{growth:.1f}", "at most 12", growth <= 12)  # fmt: skip


def measure_latency(bench):
    """A push that comes alone, and under load."""
    body = pprof(100, 30, random.Random(1))
    with Server(bench) as server:
        with contextlib.closing(http.client.HTTPConnection(server.address, timeout=120)) as connection:
            alone = []
            for _ in range(40):
                began = time.perf_counter()
                status, _ = push(server, connection, body, "alone")
                alone.append((time.perf_counter() - began) * 1000)
                time.sleep(0.05)
        alone.sort()
        result = bench.simulate(server, "--agents", 64, "--services", 20, "--services-per-agent", 1, "--rows",
                                1000, "--compression", "zstd", "--fast", "--prime", "--prepare", "--rounds",
                                10)  # fmt: skip
    p50 = alone[len(alone) // 2]
    bench.row("push latency ms p50, alone and with 64 senders", f"{p50:.1f}", f"{result['latency_p50_ms']:.1f}", "",
              "at most 15 alone", p50 <= 15)  # fmt: skip
    print(f"    64 senders: {result['rows_per_second']:,.0f} rows/s")


def measure_fresh(bench):
    """Bytes on disk for each row within a minute after it came, at two volumes."""
    each = []
    for agents in (20, 80):
        with Server(bench) as server:
            bench.simulate(server, "--agents", agents, "--services", 20, "--services-per-agent", 10, "--rows", 100,
                           "--compression", "zstd", "--fast", "--rounds", 10)  # fmt: skip
            time.sleep(20)
            rows = server.metrics()["assay_store_samples"]
            each.append(server.files_bytes("*.assay*") / rows)
    bench.row(f"bytes/row within a minute, {rows / 4e6:.2f}M and {rows / 1e6:.2f}M rows", f"{each[0]:.1f}",
              f"{each[1]:.1f}", f"{each[1] / each[0]:.2f}", "at most 6", max(each) <= 6)  # fmt: skip


def measure_report(bench):
    """One large pprof file: `assay report` beside Go's pprof."""
    go = shutil.which("go") or ("/usr/local/go/bin/go" if os.path.exists("/usr/local/go/bin/go") else None)
    if not go:
        print("    go is not installed: left out")
        return
    folder = pathlib.Path(bench.build) / "bench" / "growth"
    folder.mkdir(parents=True, exist_ok=True)
    command = subprocess.run([go, "tool", "-n", "pprof"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    meter, result = os.path.join(bench.build, "bench", "bench-measure"), folder / "result"
    for name, samples, stacks in (("small", 40_000, 5_000), ("large", 400_000, 50_000)):
        path = folder / f"{name}.pb.gz"
        if not path.exists():
            subprocess.run([os.path.join(bench.build, "bench", "bench-generate"), "--output", path, "--samples",
                            str(samples), "--stacks", str(stacks)], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        costs = []
        for runs, line in ((9, [bench.assay, "report", "--top", "20", path]),
                           (2, [command, "-top", "-nodecount=20", "-symbolize=none", path])):  # fmt: skip
            taken = []
            for _ in range(runs):
                subprocess.run([meter, result, *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                taken.append(float(result.read_text().split()[0]) * 1000)
            taken.sort()
            costs.append(taken[len(taken) // 2] if runs > 2 else taken[0])
        ratio = costs[1] / costs[0]
        bench.row(f"report and go tool pprof, {samples / 1000:.0f}k samples, ms", f"{costs[0]:.1f}", f"{costs[1]:.0f}",
                  f"{ratio:.1f}", "at least 50", ratio >= 50)  # fmt: skip


PARTS = {"memory": measure_memory, "cores": measure_cores, "maintenance": measure_maintenance,
         "series": measure_series, "week": measure_week, "depth": measure_depth, "latency": measure_latency,
         "fresh": measure_fresh, "report": measure_report}  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--full", action="store_true", help="the larger sizes")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    print(f"{os.cpu_count()} CPUs; load before: {os.getloadavg()[0]:.1f}")
    print(ROW.format("", "small", "large", "growth", ""))
    for name in arguments.only.split(","):
        PARTS[name](bench)
    sys.exit(1 if bench.missed else 0)


main()
