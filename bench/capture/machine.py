# SPDX-License-Identifier: Apache-2.0
"""What all measurements of capture.sh use: processes that surely end, and readings of /proc."""

import os
import signal
import statistics
import subprocess
import sys
import time

CPUS = os.cpu_count()
TICKS = os.sysconf("SC_CLK_TCK")

_started, _groups = [], []


def start(command, end_signal=signal.SIGKILL, **options):
    """Starts a process that is ended with this one, if not before."""
    process = subprocess.Popen(command, **options)
    process.end_signal = end_signal
    _started.append(process)
    return process


def stop(process, signal_number=None, timeout=120):
    signal_number = signal_number or process.end_signal
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


def wait_and_measure(process, seconds):
    """Waits for a process and returns what it and its children have used."""
    end = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            _started.remove(process)
            return usage
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, seconds)
        time.sleep(0.002)


def stop_all():
    for process in list(reversed(_started)):
        stop(process)
    for group in _groups:
        group.close()


for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda *_: sys.exit(1))


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


class Group:
    """A cgroup of its own for a process, to sample that and run for nothing else. Without cgroups
    of version 2 that can be written, the options name the process instead."""

    def __init__(self, pid):
        self.path, self.options = None, ["-p", str(pid)]
        with open("/proc/mounts", encoding="utf-8") as mounts:
            roots = [words[1] for words in map(str.split, mounts) if words[2] == "cgroup2"]
        for root in roots[:1]:
            path = os.path.join(root, f"bench-{pid}")
            try:
                os.mkdir(path)
                self.path = path
                with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(str(pid))
                self.options = ["--cgroup", path]
            except OSError:
                self.close()
        _groups.append(self)

    def close(self):
        """When its process has ended."""
        if self.path:
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError:
                pass


def keep_statistics(tools):
    """The kernel's times of BPF programs, as long as this process lives."""
    process = start([tools.peer, "--stats"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdout.readline() != b"ready\n":
        raise SystemExit("The kernel's statistics of BPF programs cannot be had: are you root?")


def descriptors(pid):
    """What /proc says of each open file of a process."""
    try:
        names = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:
        return
    for name in names:
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
                yield dict(line.rstrip().split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue


def bpf_programs(pid):
    """(type, ns, runs) of each BPF program that a process has open, by the program's id."""
    return {
        int(fields["prog_id"]): (
            int(fields["prog_type"]), int(fields["run_time_ns"]), int(fields["run_cnt"]),
        )
        for fields in descriptors(pid) if "run_cnt" in fields
    }  # fmt: skip


def sampler_counters(tools, pid):
    """How many samples a recorder's BPF program has taken, and how many of them went as copies."""
    maps = {fields["map_id"] for fields in descriptors(pid) if "map_id" in fields}
    done = subprocess.run(
        [tools.peer, "--counters", *maps], check=True, capture_output=True, text=True
    )
    samples, copies = done.stdout.split()
    return int(samples), int(copies)


PERF_EVENT_PROGRAM = 7


def bpf_totals(pid, only=None):
    """(ns, runs) of all of a process's programs, or of those of one type."""
    rows = [row for row in bpf_programs(pid).values() if only in (None, row[0])]
    return sum(row[1] for row in rows), sum(row[2] for row in rows)


def family(pid):
    """A process and all that it has started and not yet waited for."""
    found = [pid]
    for parent in found:
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
        except OSError:
            pass
    return found


def _waited_seconds(pid):
    """CPU time of children that were waited for, in ticks."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[13]) + int(fields[14])) / TICKS


def _own_seconds(pid):
    """CPU time by thread, to the nanosecond: ticks are coarse for what hardly runs."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
    except OSError:
        pass
    return total / 1e9


def family_seconds(pid):
    """CPU time of a process and its children."""
    return sum(_own_seconds(member) + _waited_seconds(member) for member in family(pid))


def keep_others_off(pid):
    """Gives a process its CPU whenever it wants to run (but for the kernel's twentieth)."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass  # kernels that give groups their own share of that


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


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


def wait_for_sample(pid):
    wait_until(lambda: bpf_totals(pid, PERF_EVENT_PROGRAM)[1] > 0, 20, "The first sample")


def wait_for_walks(tools, pid, seconds, limit):
    """Until so many seconds went by without a copy: then all is walked in the kernel."""
    end = time.monotonic() + limit
    before, now = -1, sampler_counters(tools, pid)[1]
    while before != now and time.monotonic() < end:
        time.sleep(seconds)
        before, now = now, sampler_counters(tools, pid)[1]


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
