# SPDX-License-Identifier: Apache-2.0
"""What all measurements of capture.sh use: processes that surely end, and readings of /proc."""

import atexit
import os
import signal
import statistics
import subprocess
import time

CPUS = os.cpu_count()
TICKS = os.sysconf("SC_CLK_TCK")

_started = []


def start(command, **options):
    """Starts a process that is ended with this one, if not before."""
    process = subprocess.Popen(command, **options)
    _started.append(process)
    return process


def stop(process, signal_number=signal.SIGKILL, timeout=120):
    if process.poll() is None:
        process.send_signal(signal_number)
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process in _started:
        _started.remove(process)
    return process.returncode


def stop_all():
    for process in list(reversed(_started)):
        stop(process)


atexit.register(stop_all)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda *_: os._exit(stop_all() or 1))


class Peer:
    """One of the programs of peers.bpf.c, attached while this is open."""

    def __init__(self, tools, program, hz, pid="-a"):
        self.process = start(
            [tools.peer, tools.peers_object, program, str(hz), str(pid)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"The BPF program {program} cannot be attached.")
        self.pid = self.process.pid

    def close(self):
        """Returns the mean count of frames, when the program counts them."""
        words = self.process.communicate(input="")[0].split()
        stop(self.process)
        return int(words[1]) / int(words[0]) if len(words) == 2 and words[0] != "0" else 0


def keep_statistics(tools):
    """The kernel's times of BPF programs, as long as this process lives."""
    process = start([tools.peer, "--stats"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdout.readline() != b"ready\n":
        raise SystemExit("The kernel's statistics of BPF programs cannot be had: are you root?")


def bpf_programs(pid):
    """(type, ns, runs) of each BPF program that a process has open, by the program's id."""
    found = {}
    try:
        names = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:
        return found
    for name in names:
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
                fields = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue
        if "run_cnt" in fields:
            found[int(fields["prog_id"])] = (
                int(fields["prog_type"]), int(fields["run_time_ns"]), int(fields["run_cnt"]),
            )  # fmt: skip
    return found


PERF_EVENT_PROGRAM = 7


def bpf_totals(pid, only=None):
    """(ns, runs) of all of a process's programs, or of those of one type."""
    rows = [row for row in bpf_programs(pid).values() if only in (None, row[0])]
    return sum(row[1] for row in rows), sum(row[2] for row in rows)


def cpu_seconds(pid):
    """User and system time of a process and all its threads, children left out."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def schedule_seconds(pid):
    """The same, to the nanosecond and by thread: ticks are coarse for what hardly runs."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmHWM"].split()[0]) / 1024


def machine_busy():
    """(busy, all) seconds of all CPUs since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) / TICKS for word in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} took more than {seconds} s.")
        time.sleep(0.02)


def median(values):
    return statistics.median(values)


def spread(values, digits=0):
    """"3412 (3300-3600)"."""
    return (
        f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"
        if values
        else "-"
    )


class Verdicts:
    """The bars, and whether each was held."""

    def __init__(self):
        self.missed = []

    def say(self, what, held, bar):
        print(f"  {'held  ' if held else 'MISSED'}  {what} (bar: {bar})", flush=True)
        if not held:
            self.missed.append(what)
