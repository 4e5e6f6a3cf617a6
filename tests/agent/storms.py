#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an agent costs in storms of hostile programs, window by window, by the kernel's accounting.

storms.py ASSAY STORM WINDOWS KIND... runs each kind of storm against an agent of its own and
prints a table. The exit status is 1 when a window is beyond a limit, when the agent's own account is
not the kernel's, when it stops sampling, or when it doesn't say whose storm it was.
"""
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

WINDOW_SECONDS = 10
FIRST_LIMIT, LIMIT = 0.03, 0.01  # of all CPUs of the machine
MEMORY_LIMIT_KIB = 128 << 10
CPUS = os.cpu_count()
TICKS = os.sysconf("SC_CLK_TCK")
HOSTILE_USERS = range(61000, 62000)  # as in storm.c
KINDS = {
    "fork": ["fork", str(CPUS)],
    "threads": ["threads", "5000"],
    "mappings": ["mappings", "100000"],
    "users": ["users", "50"],
    "perf-maps": ["perf-maps", "5", str(96 << 20)],
    "same-pid": ["same-pid", str(CPUS)],
}


def process_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def bpf_seconds(pid):
    """Of the process's BPF programs, each of which it may have open more than once."""
    programs = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            lines = open(f"/proc/{pid}/fdinfo/{name}").read().splitlines()
        except FileNotFoundError:
            continue
        values = dict(line.split(":", 1) for line in lines if ":" in line)
        if "run_time_ns" in values:
            programs[values["prog_id"].strip()] = int(values["run_time_ns"])
    return sum(programs.values()) / 1e9


def memory_kib(pid, key="VmHWM"):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1])


def own_cgroup(name):
    """A cgroup for the storm, where the hierarchy of version 2 can be written; or None."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        path = f"{root}/assay-storm-{os.getpid()}-{name}"
        if os.path.exists(f"{root}/cgroup.procs"):
            try:
                os.mkdir(path)
                return path
            except OSError:
                return None
    return None


def remove_cgroup(path):
    for _ in range(100):
        try:
            return os.rmdir(path)
        except OSError:
            time.sleep(0.1)


class Sink(http.server.BaseHTTPRequestHandler):
    """A server that takes everything and wants nothing."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    do_GET = do_POST

    def log_message(self, *_):
        pass


def start_sink():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Agent:
    def __init__(self, assay, url, data):
        self.data, self.assay = data, assay
        self.log = open(f"{data}.log", "w")
        self.process = subprocess.Popen(
            [assay, "agent", "--server", url, "--data", data], stderr=self.log)
        self.pid = self.process.pid
        deadline = time.monotonic() + 120
        while "Sampling by" not in open(f"{data}.log").read():
            assert self.process.poll() is None, open(f"{data}.log").read()
            assert time.monotonic() < deadline, "The agent doesn't start."
            time.sleep(0.05)

    def status(self):
        text = subprocess.run([self.assay, "agent", "status", "--data", self.data, "--json"],
                              check=True, capture_output=True).stdout
        return json.loads(text)

    def used(self):
        return process_seconds(self.pid), bpf_seconds(self.pid)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def start_storm(storm, arguments, seconds, cgroup):
    def enter():
        os.nice(int(os.environ.get("ASSAY_STORM_NICE", "0")))
        if cgroup:
            open(f"{cgroup}/cgroup.procs", "w").write(str(os.getpid()))
    arguments = arguments[:2] + [str(seconds)] + arguments[2:]
    return subprocess.Popen([storm] + arguments, stdout=subprocess.DEVNULL, preexec_fn=enter)


def run(assay, storm, url, windows, kind, folder):
    """Rows of the table: of each window its number, shares of the machine, memory; and what is wrong."""
    agent = Agent(assay, url, f"{folder}/{kind}")
    cgroup = own_cgroup(kind)
    rows = []
    try:
        time.sleep(WINDOW_SECONDS)  # the machine without the storm is learned
        hostile = start_storm(storm, KINDS[kind], WINDOW_SECONDS * windows + 5, cgroup)
        first, began = agent.status(), agent.used()
        for number in range(windows):
            process, bpf = agent.used()
            start = time.monotonic()
            time.sleep(WINDOW_SECONDS)
            passed = (time.monotonic() - start) * CPUS
            then = agent.used()
            rows.append({"storm": kind, "window": number + 1,
                         "process": (then[0] - process) / passed,
                         "bpf": (then[1] - bpf) / passed, "memory": memory_kib(agent.pid)})
        status, ended = agent.status(), agent.used()
        hostile.kill()
        hostile.wait()
    finally:
        agent.stop()
        if cgroup:
            remove_cgroup(cgroup)
    return rows, check(kind, cgroup, first, status, began, ended)


def check(kind, cgroup, first, status, began, ended):
    """What is wrong with what the agent says of itself."""
    own = [status[key] - first[key] for key in ("cpu_seconds", "bpf_seconds")]
    seen = [after - before for before, after in zip(began, ended)]
    print(f"{kind}: the agent counts {own[0]:.2f} s and {own[1]:.2f} s in BPF, the kernel {seen[0]:.2f} "
          f"s and {seen[1]:.2f} s; {status['samples'] - first['samples']} samples; "
          f"losses {status['losses']}; degraded {status['degraded']}", flush=True)
    bad = []
    # It counts once a second, and in clock ticks.
    if any(abs(a - b) > 0.1 * b + 0.15 for a, b in zip(own, seen)):
        bad.append(f"{kind}: the agent counts {own} s, the kernel {seen} s")
    if status["samples"] == first["samples"] or status["budget_rest_seconds"]:
        bad.append(f"{kind}: the agent stopped sampling")
    name = os.path.basename(cgroup) if cgroup else ""
    if not any((name and entry.get("cgroup", "").endswith(name)) or
               entry.get("user") in HOSTILE_USERS for entry in status["degraded"]):
        if cgroup or kind in ("users", "perf-maps"):
            bad.append(f"{kind}: the agent doesn't say whose storm it is")
    return bad


def report(rows):
    bad = []
    print(f"{'storm':10} {'window':>6} {'process':>8} {'BPF':>8} {'sum':>8} {'memory':>9}")
    for row in rows:
        total = row["process"] + row["bpf"]
        limit = FIRST_LIMIT if row["window"] == 1 else LIMIT
        print(f"{row['storm']:10} {row['window']:6} {row['process']:8.2%} {row['bpf']:8.2%} "
              f"{total:8.2%} {row['memory'] / 1024:5.0f} MiB", flush=True)
        if total > limit:
            bad.append(f"{row['storm']}: {total:.2%} of the machine in window {row['window']}; "
                       f"the limit is {limit:.0%}")
        if row["memory"] > MEMORY_LIMIT_KIB:
            bad.append(f"{row['storm']}: {row['memory']} KiB; the limit is {MEMORY_LIMIT_KIB}")
    return bad


def main():
    assay, storm, windows, *kinds = sys.argv[1:]
    url = start_sink()
    bad = []
    folder = tempfile.mkdtemp(dir=".")
    for kind in kinds or KINDS:
        rows, wrong = run(assay, storm, url, int(windows), kind, folder)
        bad += report(rows) + wrong
    shutil.rmtree(folder)
    for line in bad:
        print(line, file=sys.stderr)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
