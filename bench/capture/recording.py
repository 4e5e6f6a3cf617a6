# SPDX-License-Identifier: Apache-2.0
"""What recording a busy machine costs while it goes on, in the kernel and outside, beside a bare
BPF sampler and beside perf."""

import os
import signal
import subprocess
import time

import machine
from machine import PERF_EVENT_PROGRAM

HZ = 99
KERNEL_BAR_PERCENT, KERNEL_BAR_RATIO = 0.2, 1.5
CPU_BAR_PERCENT, MEMORY_BAR_MIB = 0.5, 64
START_SECONDS = 2


class Window:
    """What a process with BPF programs uses between two points of time."""

    def __init__(self, pid):
        self.pid = pid
        self.cpu, self.bpf = machine.family_seconds(pid), self.bpf_totals()
        self.busy, self.time = machine.machine_busy(), time.monotonic()

    def bpf_totals(self):
        """(ns, runs) of the programs that sample, and of the others."""
        totals = [0, 0], [0, 0]
        for kind, ns, runs in machine.bpf_programs(self.pid).values():
            total = totals[kind != PERF_EVENT_PROGRAM]
            total[0] += ns
            total[1] += runs
        return totals

    def close(self):
        all_seconds = (time.monotonic() - self.time) * machine.CPUS
        busy = machine.machine_busy()
        self.percent = 100 * (machine.family_seconds(self.pid) - self.cpu) / all_seconds
        self.bpf_rows = []
        for before, after in zip(self.bpf, self.bpf_totals()):
            ns, runs = after[0] - before[0], after[1] - before[1]
            self.bpf_rows.append((ns / 1e7 / all_seconds, runs, ns / max(runs, 1)))
        self.bpf_percent = sum(row[0] for row in self.bpf_rows)
        self.busy_percent = 100 * (busy[0] - self.busy[0]) / (busy[1] - self.busy[1])
        self.mib = machine.peak_mib(self.pid)


class Recorder:
    """One that records all. What its end takes is measured apart."""

    def __init__(self, tools, name, command, output):
        self.name, self.output = name, output
        self.process = machine.start(
            command, env=tools.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self.process.pid

    def interrupt(self):
        self.end_cpu, self.end_seconds = -machine.family_seconds(self.pid), -time.monotonic()
        self.process.send_signal(signal.SIGINT)

    def end(self):
        """After interrupt(), until the file is written."""
        usage = machine.wait_and_measure(self.process, 120)
        self.end_seconds += time.monotonic()
        self.end_cpu += usage.ru_utime + usage.ru_stime
        self.end_mib = usage.ru_maxrss / 1024

    def row(self, window):
        print(
            f"  {self.name:<40} {window.percent:>8.3f}% {window.mib:>9.1f} "
            f"{self.end_seconds:>9.2f} {self.end_cpu:>9.2f} {self.end_mib:>9.1f} "
            f"{os.path.getsize(self.output) / 1024:>9.0f}",
            flush=True,
        )


def assay(tools, output):
    path = os.path.join(tools.scratch, output)
    command = [tools.assay, "record", "-a", "-q", "-F", str(HZ), "-o", path]
    return Recorder(tools, f"assay record -a -F {HZ}", command, path)


def perf(tools, output, *call_graph):
    path = os.path.join(tools.scratch, output)
    command = [tools.perf, "record", "-a", "-F", str(HZ), *call_graph, "-o", path]
    return Recorder(tools, f"perf record -a -F {HZ} {' '.join(call_graph)}", command, path)


def say_kernel(ours, bare, verdicts):
    bar = max(KERNEL_BAR_PERCENT, KERNEL_BAR_RATIO * bare.bpf_percent)
    rows = {
        "assay, samples": ours.bpf_rows[0],
        "assay, processes that come and go": ours.bpf_rows[1],
        "bpf_get_stackid, user and kernel": bare.bpf_rows[0],
    }
    print(f"  {'in the kernel':<40} {'machine':>9} {'runs':>9} {'ns each':>9}")
    for name, (percent, runs, ns) in rows.items():
        print(f"  {name:<40} {percent:>8.3f}% {runs:>9} {ns:>9.0f}")
    verdicts.say(
        f"assay's BPF programs take {ours.bpf_percent:.3f}% of the machine, "
        f"{ours.bpf_percent / max(bare.bpf_percent, 1e-9):.2f} times a bare sampler's",
        ours.bpf_percent <= bar, f"at most {bar:.3f}%",
    )  # fmt: skip


def measure_assay(tools, seconds, verdicts):
    recorder = assay(tools, "busy.pb.gz")
    machine.wait_for_sample(recorder.pid)
    peer = machine.Peer(tools, "stack_id", HZ)
    time.sleep(START_SECONDS)
    windows = [Window(recorder.pid), Window(peer.pid)]
    time.sleep(seconds)
    for window in windows:
        window.close()
    peer.close()
    recorder.interrupt()
    recorder.end()
    say_kernel(*windows, verdicts)
    return recorder, windows[0]


def measure_perf(tools, seconds, *call_graph):
    recorder = perf(tools, "busy.data", *call_graph)
    time.sleep(START_SECONDS)
    window = Window(recorder.pid)
    time.sleep(seconds)
    window.close()
    recorder.interrupt()
    recorder.end()
    recorder.row(window)


def run(tools, options, verdicts):
    load = tools.load()
    print(f"While a busy machine is recorded ({load.name}), all of it, {HZ} Hz.\n")
    recorder, window = measure_assay(tools, 6 if options.quick else 15, verdicts)
    print(
        f"\n  {'the command':<40} {'machine':>9} {'peak MiB':>9} {'end s':>9} {'end CPU s':>9} "
        f"{'end MiB':>9} {'file KiB':>9}"
    )
    recorder.row(window)
    for call_graph in (("--call-graph", "dwarf"), ("-g",)):
        measure_perf(tools, 3 if options.quick else 10, *call_graph)
    print(f"  ({window.busy_percent:.0f}% of the machine was busy.)")
    verdicts.say(
        f"assay takes {window.percent:.3f}% of the machine while it records",
        window.percent <= CPU_BAR_PERCENT, f"at most {CPU_BAR_PERCENT}%",
    )  # fmt: skip
    verdicts.say(
        f"assay has {window.mib:.1f} MiB of memory at most while it records",
        window.mib <= MEMORY_BAR_MIB, f"at most {MEMORY_BAR_MIB} MiB",
    )  # fmt: skip
