#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A day of 100 services, sent by `assay simulate` to a server on ClickHouse: scale.sh calls this."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
MIB = 1 << 20


def cpu_seconds(pid):
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e9  # the CPU clock of the process


def memory(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(name + r":\s+(\d+)", text)[1]) * 1024


def get(url):
    with urllib.request.urlopen(url, timeout=600) as answer:
        return answer.read()


def main():
    parser = argparse.ArgumentParser()
    for name in ("assay", "name", "host"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--engine-pid", type=int, required=True)
    parser.add_argument("--current", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    missed = []

    def bar(held, text):
        missed.extend([] if held else [text])
        print(f"{'held  ' if held else 'MISSED'}  {text}", flush=True)

    def ask(sql):
        request = urllib.request.Request(f"http://{options.host}/", data=sql.encode())
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read().decode()

    folder = pathlib.Path(tempfile.mkdtemp(dir="."))
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [options.assay, "server", "--listen", "127.0.0.1:0", "--data", folder / "data",
             "--store", f"clickhouse://{options.host}/assay"], stderr=log)
    while not (found := re.search(r"serving on (\S+)", (folder / "log").read_text())):
        if server.poll() is not None:
            sys.exit((folder / "log").read_text())
        time.sleep(0.05)
    url = found[1]
    interval, rounds = (600, 144) if options.quick else (60, 1440)
    before = cpu_seconds(server.pid), cpu_seconds(options.engine_pid)
    sent = subprocess.run(
        [options.assay, "simulate", "--server", url, "--agents", "20", "--services", "100",
         "--interval", f"{interval}s", "--rounds", str(rounds), "--from", "now-23h59m",
         "--compression", "zstd", "--json"], stdout=subprocess.PIPE, text=True)
    if sent.returncode:
        sys.exit("The simulation failed.")
    own, engine = cpu_seconds(server.pid) - before[0], cpu_seconds(options.engine_pid) - before[1]
    rows = int(ask("SELECT count() FROM assay.samples WHERE kind = 1 FORMAT TSV"))
    print(f"{options.name}: {rows:,} rows of 100 services in 24 hours")
    rate = rows / own
    bar(rate >= 300_000, f"ingest: {rate:,.0f} rows/s per core of assay (bar: 300,000); "
        f"the engine's own: {rows / engine:,.0f} rows/s per core")
    ask("OPTIMIZE TABLE assay.samples FINAL")
    time.sleep(1)
    size = float(ask("SELECT sum(data_compressed_bytes) FROM system.parts WHERE active AND "
                     "database = 'assay' FORMAT TSV")) / rows
    samples = float(ask("SELECT sum(data_compressed_bytes) FROM system.parts WHERE active AND "
                        "database = 'assay' AND table = 'samples' FORMAT TSV")) / rows
    text = f"stored: {size:.2f} bytes per row, {samples:.2f} of them samples"
    bar(size <= 4, text + " (bar: 4)") if options.current else print("        " + text)
    query = urllib.parse.quote(TYPE + "{}")
    times = []
    try:
        for _ in range(5 if options.quick else 30):
            begun = time.monotonic()
            flame = json.loads(get(f"{url}/api/v1/flame?query={query}&from=now-24h&to=now"))
            times.append(time.monotonic() - begun)
            if not flame["quality"]["windows"]:
                sys.exit("The flame graph is empty.")
        times.sort()
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        bar(p99 <= 2, f"flame graph of 24 h: p50 {times[len(times) // 2]:.2f} s, p99 {p99:.2f} s (bar: 2)")
    except urllib.error.HTTPError as error:
        bar(False, f"flame graph of 24 h: {error.read().decode()[:200]}")
    peak = memory(server.pid, "VmHWM")
    bar(peak <= 256 * MIB, f"memory of the server: {peak / MIB:.0f} MiB at most (bar: 256)")
    server.terminate()
    server.wait()
    sys.exit(1 if missed else 0)


main()
