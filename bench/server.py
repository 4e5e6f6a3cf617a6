#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server takes, keeps and answers: see README.md, and server.sh, which calls this."""

import argparse
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

MIB = 1 << 20
PARTS = ["ingest", "day", "agents"]


class Bench:
    def __init__(self, arguments):
        self.assay = arguments.assay
        self.quick = arguments.quick
        self.missed = 0

    def bar(self, held, text):
        self.missed += not held
        print(f"{'held  ' if held else 'MISSED'}  {text}", flush=True)

    @contextlib.contextmanager
    def server(self, *options):
        """A server with a store of its own on a free port."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-bench-"))
        with open(folder / "log", "w") as log:
            process = subprocess.Popen(
                [self.assay, "server", "--listen", "127.0.0.1:0", "--data", folder / "store", *options],
                stderr=log)  # fmt: skip
        try:
            url = None
            for _ in range(600):
                found = re.search(r"serving on (\S+)", (folder / "log").read_text())
                if found:
                    url = found[1]
                    break
                time.sleep(0.05)
            if not url:
                sys.exit("The server did not start: " + (folder / "log").read_text())
            self.folder = folder
            yield url, process.pid
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(folder)

    def simulate(self, url, pid, *options):
        done = subprocess.run(
            [self.assay, "simulate", "--server", url, "--server-pid", str(pid), "--json", *options],
            stdout=subprocess.PIPE, check=False)  # fmt: skip
        if not done.stdout:
            sys.exit("The simulator failed.")
        result = json.loads(done.stdout)
        if result["acknowledged"] != result["uploads"]:
            sys.exit(f"Not everything was acknowledged: {result}")
        return result


def metrics(url):
    with contextlib.closing(connect(url)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    return {m[1]: float(m[2]) for m in re.finditer(r"^(assay_\S+) (\S+)$", text, re.MULTILINE)}


def connect(url):
    return http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    load = os.getloadavg()[0]
    print(f"machine   {model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, "
          f"{memory} MiB, Linux {platform.release()}; load before: {load:.1f}")  # fmt: skip
    print("settings  the server's defaults: group commit within 50 ms, synchronous, one data folder"
          f"\n          in {tempfile.gettempdir()}; loopback, no TLS, no tokens; seed 1\n")  # fmt: skip


# What is sent, and how it is compressed: assay's agent sends the first, other agents of
# OpenTelemetry the second, most pprof clients the third.
KINDS = [("otlp", "zstd"), ("otlp", "gzip"), ("pprof", "gzip")]


def ingest_once(bench, kind, coding, known, rounds):
    with bench.server() as (url, pid):
        result = bench.simulate(
            url, pid, "--agents", "32", "--services", "8", "--services-per-agent", "1", "--rows",
            "1100", "--stacks", "4000", "--stacks-known", known, "--format", kind, "--compression",
            coding, "--fast", "--prime", "--prepare", "--rounds", rounds)  # fmt: skip
    if result["rows"] < 1000 * result["uploads"]:
        sys.exit("The uploads have fewer rows than they should.")
    # Compaction, rollups and the survey of names come later, and follow the clock more than the rows.
    durable = result["server_cpu_seconds"] - result["server_maintenance_seconds"]
    result["durable_us"] = durable * 1e6 / result["rows"]
    result["all_us"] = result["server_cpu_seconds"] * 1e6 / result["rows"]
    return result


def measure_ingest(bench):
    rounds, runs = ("24", 3) if bench.quick else ("40", 5)
    print("Rows from socket to durable: 32 senders, 8 services, one service and 1,000 rows or more"
          f"\nin an upload, 4,000 known stacks a service; CPU time of the server alone, the best of"
          f" {runs}\nruns; `all` is with housekeeping meanwhile\n")
    print(f"{'':12}{'known':>7}{'rows':>11}{'bytes/row':>11}{'rows/s':>10}{'us/row':>8}{'all':>7}"
          f"{'rows/s per core':>17}{'p50 ms':>8}{'p99 ms':>8}")  # fmt: skip
    bars = []
    cases = [(kind, coding, known) for kind, coding in KINDS for known in ["0.95", "0"]]
    tries = {case: [] for case in cases}
    for _ in range(runs):  # in turn: what slows a machine down for a minute concerns them all
        for case in cases:
            tries[case].append(ingest_once(bench, *case, rounds))
    for kind, coding in KINDS:
        for known in ["0.95", "0"]:
            result = min(tries[kind, coding, known], key=lambda each: each["durable_us"])
            rate = 1e6 / result["durable_us"]
            print(f"{kind + ', ' + coding:12}{float(known):>7.0%}{result['rows']:>11,.0f}"
                  f"{result['body_bytes'] / result['rows']:>11.1f}{result['rows_per_second']:>10,.0f}"
                  f"{result['durable_us']:>8.2f}{result['all_us']:>7.2f}{rate:>17,.0f}"
                  f"{result['latency_p50_ms']:>8.1f}{result['latency_p99_ms']:>8.1f}",
                  flush=True)  # fmt: skip
            if known == "0.95":
                bars.append((kind, coding, rate))
    print()
    for kind, coding, rate in bars:
        bench.bar(rate >= 1e6, f"{kind} with {coding}: {rate:,.0f} rows/s per core with 95% known "
                               "stacks, wanted 1,000,000")  # fmt: skip
    print()


def latencies(url, question, count):
    taken = []
    with contextlib.closing(connect(url)) as connection:
        for i in range(count + 1):
            began = time.perf_counter()
            connection.request("GET", "/api/v1/flame?" + urllib.parse.urlencode(question))
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f"A flame graph was refused: {body[:300]}")
            if i:  # the first one reads what is not in memory yet
                taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)], len(body)


def wait_for_house(url, seconds):
    """Until compaction has nothing to do; the last hour stays as it came."""
    before, quiet, until = None, 0, time.monotonic() + seconds
    while time.monotonic() < until and quiet < 8:
        now = metrics(url)
        state = (now["assay_store_fresh_blocks"], now.get('assay_store_bytes{tier="10m"}'),
                 now.get('assay_store_bytes{tier="hour"}'))  # fmt: skip
        quiet = quiet + 1 if state == before else 0
        before = state
        time.sleep(1)
    return metrics(url)


def stored_on(bench, url, day):
    """Rows and bytes of a day's raw file, by the store's own folder and the server's figures."""
    question = {"query": "cpu", "from": day.timestamp(), "to": day.timestamp() + 86400,
                "max_nodes": 2}  # fmt: skip
    with contextlib.closing(connect(url)) as connection:
        connection.request("GET", "/api/v1/flame?" + urllib.parse.urlencode(question))
        rows = json.load(connection.getresponse())["quality"]["samples"]
    file = bench.folder / "store/anonymous" / f"raw-default-{day:%Y-%m-%d}.assay"
    log = file.with_name(file.name + "-wal")
    return rows, file.stat().st_size + (log.stat().st_size if log.exists() else 0)


def measure_day(bench):
    interval, count = ("10m", 30) if bench.quick else ("1m", 100)
    now = datetime.datetime.now(datetime.timezone.utc)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0) - datetime.timedelta(days=1)
    if bench.quick:
        day = now - datetime.timedelta(days=1)
    print(f"A day: 100 services on 20 hosts, a profile of each every {interval}, 100 rows each, 2,000"
          "\nstacks a service and 1% new ones; sent with times of the past, from "
          f"{day:%Y-%m-%d %H:%M} on, then\ncompacted\n")
    with bench.server() as (url, pid):
        result = bench.simulate(
            url, pid, "--agents", "20", "--services", "100", "--services-per-agent", "5", "--rows",
            "100", "--stacks-known", "0.99", "--interval", interval, "--duration",
            f"{(now - day).total_seconds():.0f}s", "--from", f"{day.timestamp():.0f}")  # fmt: skip
        state = wait_for_house(url, 20 if bench.quick else 90)
        rows = state["assay_store_samples"]
        fresh = state["assay_store_fresh_blocks"]
        print(f"{rows:,.0f} rows, {result['windows']:,.0f} windows; {fresh:,.0f} blocks not "
              "compacted yet")
        size = state['assay_store_bytes{tier="raw"}']
        if not bench.quick:
            rows, size = stored_on(bench, url, day)
        print(f"{'':34}{'p50 ms':>8}{'p99 ms':>8}{'answer KiB':>12}")
        worst = 0
        for hours in [1, 24]:
            for name, query in [("all services", "cpu"), ("one service", 'cpu{service="service-007"}')]:
                p50, p99, length = latencies(url, {"query": query, "from": f"now-{hours}h"}, count)
                print(f"flame graph, {hours:>2} h, {name:16}{p50:>9.1f}{p99:>8.1f}{length / 1024:>12.0f}",
                      flush=True)  # fmt: skip
                worst = max(worst, p99) if hours == 24 else worst
    print()
    each = size / rows
    if bench.quick:  # names and trees are the same for a tenth of the rows
        print(f"        {each:.2f} bytes per stored row, names and trees included; no bar for so few")
    else:
        bench.bar(each <= 2, f"{each:.2f} bytes per stored row of the {rows:,} in the first day's "
                             "raw file, names and trees included, wanted 2")  # fmt: skip
    bench.bar(worst <= 200, f"{worst:.0f} ms p99 of a flame graph over 24 h, wanted 200")
    print()


def measure_agents(bench):
    duration = "40s" if bench.quick else "3m"
    print(f"1,000 agents, a connection each, an upload every 10 s for {duration}: OTLP, 10 of 100"
          "\nservices a host, 50 rows each, 95% known stacks, gzip\n")
    with bench.server() as (url, pid):
        result = bench.simulate(
            url, pid, "--agents", "1000", "--services", "100", "--services-per-agent", "10",
            "--rows", "50", "--prime", "--duration", duration)  # fmt: skip
    print(f"{result['rows']:,.0f} rows in {result['windows']:,.0f} windows, "
          f"{result['rows_per_second']:,.0f} rows/s, latency p50 "
          f"{result['latency_p50_ms']:.0f} ms, p99 {result['latency_p99_ms']:.0f} ms; "
          f"{result['late']:,.0f} uploads were late")  # fmt: skip
    # Of the time that the uploads should have taken: a machine that is late hides nothing.
    nominal = {"40s": 40, "3m": 180}[duration]
    cores = result["server_cpu_seconds"] / nominal
    peak = result["server_peak_memory"] / MIB
    print()
    bench.bar(peak <= 256, f"{peak:.0f} MiB resident at most, wanted 256")
    bench.bar(cores <= 1, f"{cores:.2f} cores, wanted 1")
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    bench = Bench(arguments)
    machine()
    for part in [arguments.only] if arguments.only else PARTS:
        {"ingest": measure_ingest, "day": measure_day, "agents": measure_agents}[part](bench)
    sys.exit(1 if bench.missed else 0)


if __name__ == "__main__":
    main()
