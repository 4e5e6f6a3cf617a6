#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an agent costs in storms of hostile programs, window by window, by the kernel's accounting.

storms.py ASSAY STORM WINDOWS KIND... runs each kind of storm against an agent of its own and
prints a table. The exit status is 1 when a window is beyond a limit, when the agent's own account is
not the kernel's, when it stops sampling, when it doesn't say whose storm it was, or when the program
of another user beside the storm loses its samples or their names.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

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


class Server:
    """A server that takes everything, and can be asked what came."""
    def __init__(self, assay, data):
        self.log = open(f"{data}.log", "w")
        self.process = subprocess.Popen(
            [assay, "server", "--listen", "127.0.0.1:0", "--data", data], stderr=self.log)
        deadline = time.monotonic() + 120
        while not (found := re.search("serving on (http://[^ \n]+)", open(f"{data}.log").read())):
            assert self.process.poll() is None, open(f"{data}.log").read()
            assert time.monotonic() < deadline, "The server doesn't start."
            time.sleep(0.05)
        self.url = found[1]

    def stacks(self, service):
        query = urllib.parse.quote(f'cpu{{service_name="{service}"}}')
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/profile?query={query}&from=now-1h"
                                        "&to=now%2B1h&format=folded") as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            print(error.read().decode())
            return {}
        return {stack: int(value) / 1e9 for stack, value in (line.rsplit(" ", 1) for line in lines)}

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


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

    def account(self):
        """What it says of itself, between the kernel's accounts before and after its answer, which may
        take seconds on a busy machine."""
        before = self.used()
        return before, self.status(), self.used()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def start_honest(storm, kind, seconds):
    """The program, and the name of its service. It has none of the storm's cgroup and users."""
    name = f"honest-{kind}-{os.getpid()}"
    environment = dict(os.environ, OTEL_SERVICE_NAME=name)
    return subprocess.Popen([storm, "honest", "1", str(seconds)], env=environment,
                            stdout=subprocess.DEVNULL, start_new_session=True), name


def child_of(pid):
    return int(open(f"/proc/{pid}/task/{pid}/children").read().split()[0])


def start_storm(storm, arguments, seconds, cgroup):
    def enter():
        os.nice(int(os.environ.get("ASSAY_STORM_NICE", "0")))
        if cgroup:
            open(f"{cgroup}/cgroup.procs", "w").write(str(os.getpid()))
    arguments = arguments[:2] + [str(seconds)] + arguments[2:]
    return subprocess.Popen([storm] + arguments, stdout=subprocess.DEVNULL, preexec_fn=enter,
                            start_new_session=True)


def run(assay, storm, server, windows, kind, folder):
    """Rows of the table: of each window its number, shares of the machine, memory; and what is wrong."""
    agent = Agent(assay, server.url, f"{folder}/{kind}")
    cgroup = own_cgroup(kind)
    rows, started = [], []
    try:
        honest, service = start_honest(storm, kind, 3600)  # until it is ended
        started.append(honest)
        time.sleep(WINDOW_SECONDS)  # the machine without the storm is learned
        hostile = start_storm(storm, KINDS[kind], 3600, cgroup)  # until it is ended
        started.append(hostile)
        began = agent.account()
        for number in range(windows):
            process, bpf = agent.used()
            start = time.monotonic()
            time.sleep(WINDOW_SECONDS)
            passed = (time.monotonic() - start) * CPUS
            then = agent.used()
            rows.append({"storm": kind, "window": number + 1,
                         "process": (then[0] - process) / passed,
                         "bpf": (then[1] - bpf) / passed, "memory": memory_kib(agent.pid)})
        ended = agent.account()
        named = await_owner(agent, kind, cgroup)
        used = process_seconds(child_of(honest.pid))
    finally:
        for process in started:  # and the children that do the work
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        agent.stop()
        if cgroup:
            remove_cgroup(cgroup)
    return rows, (check(kind, began, ended, named) +
                  check_honest(kind, used, server.stacks(service)))


def names_owner(status, kind, cgroup):
    """Whether it says whose storm it is. Without a cgroup, some storms look like anything else."""
    if not cgroup and kind not in ("users", "perf-maps"):
        return True
    name = os.path.basename(cgroup) if cgroup else ""
    return any((name and entry.get("cgroup", "").endswith(name)) or entry.get("user") in HOSTILE_USERS
               for entry in status["degraded"])


def await_owner(agent, kind, cgroup):
    """Names are looked up after their window has ended, and the storm itself may get little CPU time."""
    deadline = time.monotonic() + 120
    while not (named := names_owner(agent.status(), kind, cgroup)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return named


def check_honest(kind, used, stacks):
    """What the storm has taken from the program beside it. Samples count in whole periods of some 50 ms,
    and 100 where the agent saves."""
    own = {stack: value for stack, value in stacks.items() if "hostile" not in stack}
    seen = sum(own.values())
    jit = sum(value for stack, value in own.items() if "honest_function" in stack)
    nameless = sum(value for stack, value in own.items() if "[jit" in stack or "[unknown mapping" in stack)
    print(f"{kind}: the program beside it used {used:.2f} s; sampled {seen:.2f} s, of which "
          f"{jit:.2f} s by its own name and {nameless:.2f} s without", flush=True)
    bad = []
    if used > 2 and seen < used / 4:
        bad.append(f"{kind}: another user's program used {used:.2f} s, and {seen:.2f} s were sampled")
    if used > 2 and jit < 3 * nameless:
        bad.append(f"{kind}: another user's program lost its names: {own}")
    return bad


def check(kind, began, ended, named):
    """What is wrong with what the agent says of itself."""
    first, status = began[1], ended[1]
    own = [status[key] - first[key] for key in ("cpu_seconds", "bpf_seconds")]
    least = [after - before for before, after in zip(began[2], ended[0])]
    most = [after - before for before, after in zip(began[0], ended[2])]
    print(f"{kind}: the agent counts {own[0]:.2f} s and {own[1]:.2f} s in BPF, the kernel "
          f"{least[0]:.2f} to {most[0]:.2f} s and {least[1]:.2f} to {most[1]:.2f} s; "
          f"{status['samples'] - first['samples']} samples; "
          f"losses {status['losses']}; degraded {status['degraded']}", flush=True)
    bad = []
    # BPF programs are counted once a second, and processes in clock ticks.
    if any(not low - 0.1 * low - 0.15 <= value <= high + 0.1 * high + 0.15
           for value, low, high in zip(own, least, most)):
        bad.append(f"{kind}: the agent counts {own} s, the kernel {least} to {most} s")
    if status["samples"] == first["samples"] or status["budget_rest_seconds"]:
        bad.append(f"{kind}: the agent stopped sampling")
    if not named:
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
    bad = []
    folder = tempfile.mkdtemp(dir=".")
    server = Server(assay, f"{folder}/server")
    try:
        for kind in kinds or KINDS:
            rows, wrong = run(assay, storm, server, int(windows), kind, folder)
            bad += report(rows) + wrong
    finally:
        server.stop()
    shutil.rmtree(folder)
    for line in bad:
        print(line, file=sys.stderr)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
