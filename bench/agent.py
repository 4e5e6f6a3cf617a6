#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent costs the host that it runs on: see README.md, and agent.sh, which calls this."""

import argparse
import http.server
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
PARTS = ["idle", "busy", "processes"]
LEARNING_SECONDS = 35  # what a start costs once is a row of its own
LIMITS = {"cpu": 0.01, "memory": 128 * MIB, "upload": MIB}


class Sink(http.server.BaseHTTPRequestHandler):
    """A server that takes everything."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST

    def log_message(self, *_):
        pass


def crowd(count, busy, end):
    """So many processes, of which the first `busy` work all the time; one in twenty does a little
    now and then, the rest sleeps."""
    for i in range(count):
        if os.fork():
            continue
        try:
            while time.monotonic() < end:
                if i < busy:
                    sum(range(20000))
                else:
                    time.sleep(min(0.05 if i % 20 == 0 else 5, max(end - time.monotonic(), 0)))
        finally:
            os._exit(0)


class Agent:
    """A running agent, and what the kernel says that it costs."""

    def __init__(self, assay, url, folder):
        self.folder = folder
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(
            [assay, "agent", "--server", url, "--data", folder / "data"], stderr=self.log)  # fmt: skip
        self.assay = assay
        while "Sampling by" not in (folder / "log").read_text():
            if self.process.poll() is not None:
                sys.exit((folder / "log").read_text())
            time.sleep(0.1)

    def status(self):
        return json.loads(
            subprocess.check_output(
                [self.assay, "agent", "status", "--json", "--data", self.folder / "data"]))  # fmt: skip

    def used(self):
        """CPU seconds of the process, and of its BPF programs."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(") ", 1)[1].split()
        own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return own, max(self.status()["bpf_seconds"], 0)

    def peak(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.seconds = 30 if arguments.quick else 120
        self.missed = 0
        self.sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=self.sink.serve_forever, daemon=True).start()

    def bar(self, held, text):
        self.missed += not held
        print(f"{'held  ' if held else 'MISSED'}  {text}", flush=True)

    def load(self, part):
        """Starts what the host is busy with; a process that ends with all of it."""
        cpus = os.cpu_count()
        end = time.monotonic() + LEARNING_SECONDS + self.seconds + 15
        counts = {"idle": (0, 0), "busy": (4 * cpus, 2 * cpus),
                  "processes": (200 if self.arguments.quick else 2000, cpus)}  # fmt: skip
        count, busy = counts[part]
        pid = os.fork()
        if not pid:
            crowd(count, busy, end)
            os._exit(0)
        os.waitpid(pid, 0)
        return count

    def measure(self, part):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-bench-"))
        count = self.load(part)
        url = f"http://127.0.0.1:{self.sink.server_port}"
        agent = Agent(self.arguments.assay, url, folder)
        try:
            time.sleep(LEARNING_SECONDS)
            own, bpf = agent.used()
            bytes_before = agent.status()["encoded_bytes"]
            began = time.monotonic()
            time.sleep(self.seconds)
            own_then, bpf_then = agent.used()
            passed = time.monotonic() - began
            status = agent.status()
            cpus = os.cpu_count()
            share = (own_then - own + bpf_then - bpf) / passed / cpus
            upload = (status["encoded_bytes"] - bytes_before) * 60 / passed
            peak = agent.peak()
            print(f"{part:10} {count:6} {100 * share:7.3f}% {100 * (bpf_then - bpf) / passed / cpus:7.3f}%"
                  f" {own + bpf:7.2f} s {status['resident_bytes'] / MIB:7.1f} {peak / MIB:7.1f}"
                  f" {upload / 1024:8.0f} {status['rate_hz']:5} {status['budget_steps_down']:6}")  # fmt: skip
            return [
                (share <= LIMITS["cpu"], f"{part}: {100 * share:.3f}% of the host's CPU, at most 1%"),
                (peak <= LIMITS["memory"], f"{part}: {peak / MIB:.1f} MiB at its peak, at most 128"),
                (upload <= LIMITS["upload"], f"{part}: {upload / 1024:.0f} KiB a minute, at most 1024"),
                (status["windows_dropped"] == 0, f"{part}: no window was lost"),
            ]  # fmt: skip
        finally:
            agent.stop()
            time.sleep(1)

    def run(self):
        print(f"{platform.release()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} before; "
              f"{self.seconds} s each, after {LEARNING_SECONDS} s of learning\n")  # fmt: skip
        print("host        procs      CPU    (BPF)     start  MiB now    peak  KiB/min  rate  steps")
        bars = []
        for part in PARTS:
            if self.arguments.only in (None, part):
                bars += self.measure(part)
        print()
        for held, text in bars:
            self.bar(held, text)
        return 1 if self.missed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", required=True)
    parser.add_argument("--quick", action="store_true", help="shorter, and 200 processes")
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("Sampling a host takes root.")
    sys.exit(Bench(arguments).run())


if __name__ == "__main__":
    main()
