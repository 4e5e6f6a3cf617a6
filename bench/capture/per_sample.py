# SPDX-License-Identifier: Apache-2.0
"""What one sample costs in the kernel, by stack depth, beside the kernel's own walk."""

import os
import subprocess
import time

import machine
from machine import PERF_EVENT_PROGRAM, median, spread

BAR = 1.5
BAR_FRAMES = 30
PEERS = ("empty", "stack_user", "stack_both")
# A chain's frames beyond the subject's own: C's start-up code, as far as each walk sees it.
START_FRAMES, START_FRAMES_FP = 3, 0
COLD_MIB = 64


def measure(pid, seconds):
    """Nanoseconds per run and runs of the sampling program that a process has loaded."""
    before = machine.bpf_totals(pid, PERF_EVENT_PROGRAM)
    time.sleep(seconds)
    after = machine.bpf_totals(pid, PERF_EVENT_PROGRAM)
    runs = after[1] - before[1]
    return ((after[0] - before[0]) / runs if runs else 0), runs


def start_recording(tools, hz, pid, output):
    return machine.start(
        [tools.assay, "record", "-F", str(hz), "-p", str(pid), "-q", "-o", output],
        env=tools.environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def mean_frames(tools, path):
    folded = subprocess.run(
        [tools.assay, "convert", path, "-o", "-", "--to", "folded"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    total = frames = 0
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        if "step_" in stack:
            total += int(count)
            frames += int(count) * (stack.count(";") + 1)
    return frames / total if total else 0


class Depth:
    """All programs at one depth and rate, measured in turns."""

    def __init__(self, tools, frames, hz, mib):
        self.tools, self.frames, self.hz = tools, frames, hz
        self.ours, self.theirs = [], {name: [] for name in PEERS}
        self.ours_frames = self.theirs_frames = 0
        work = [str(mib)] if mib else []
        self.subject = machine.start([tools.subject, str(frames - START_FRAMES), *work])
        self.subject_fp = machine.start([tools.subject_fp, str(frames - START_FRAMES_FP), *work])

    def run(self, rounds, seconds, warm_up):
        output = os.path.join(self.tools.scratch, "sample.pb.gz")
        recorder = start_recording(self.tools, self.hz, self.subject.pid, output)
        machine.wait_until(
            lambda: machine.bpf_totals(recorder.pid, PERF_EVENT_PROGRAM)[1] > 0, 20,
            "The first sample",
        )  # fmt: skip
        time.sleep(warm_up)
        for _ in range(rounds):
            for name in PEERS:
                peer = machine.Peer(self.tools, name, self.hz, self.subject_fp.pid)
                time.sleep(0.1)
                before = machine.bpf_totals(recorder.pid, PERF_EVENT_PROGRAM)
                theirs, _ = measure(peer.pid, seconds)
                after = machine.bpf_totals(recorder.pid, PERF_EVENT_PROGRAM)
                self.theirs_frames = max(peer.close(), self.theirs_frames)
                if after[1] > before[1]:
                    self.ours.append((after[0] - before[0]) / (after[1] - before[1]))
                self.theirs[name].append(theirs)
        machine.stop(recorder, 2)
        self.ours_frames = mean_frames(self.tools, output)
        machine.stop(self.subject)
        machine.stop(self.subject_fp)
        return self

    def ratio(self):
        return median(self.ours) / median(self.theirs["stack_user"])

    def row(self):
        print(
            f"{self.hz:>4} {self.frames:>6} {self.ours_frames:>7.1f} {self.theirs_frames:>7.1f} "
            f"{spread(self.ours):>24} {spread(self.theirs['stack_user']):>24} "
            f"{self.ratio():>6.2f}x {spread(self.theirs['stack_both']):>24} "
            f"{spread(self.theirs['empty']):>18}",
            flush=True,
        )


def run(tools, options, verdicts):
    print(
        "Nanoseconds per sample in the kernel: assay's sampler on code without frame pointers,\n"
        "beside bpf_get_stack on the same code with them, and beside a program that does nothing.\n"
        "999 Hz with warm caches, 99 Hz with cold ones. Median (least-most) of the turns.\n"
    )
    print(
        f"{'Hz':>4} {'frames':>6} {'assay':>7} {'kernel':>7} {'assay':>24} {'get_stack user':>24} "
        f"{'ratio':>7} {'get_stack user+kernel':>24} {'empty':>18}"
    )
    for hz, mib in ((999, 0), (99, COLD_MIB)):
        for frames in (10, 30, 100, 900):
            seconds = 0.5 if hz > 500 else 1.2
            depth = Depth(tools, frames, hz, mib).run(
                1 if options.quick else 2, seconds / (2 if options.quick else 1), 0.8
            )
            depth.row()
            if frames == BAR_FRAMES:
                verdicts.say(
                    f"a sample of {frames} user frames at {hz} Hz takes {depth.ratio():.2f} times "
                    "the kernel's own walk", depth.ratio() <= BAR, f"at most {BAR}",
                )  # fmt: skip
