# SPDX-License-Identifier: Apache-2.0
"""What one sample costs in the kernel, by stack depth, beside the kernel's own walk."""

import os
import signal
import subprocess
import time

import machine
from machine import PERF_EVENT_PROGRAM, median, spread

BAR = 1.5
BAR_FRAMES = 30
# A chain's frames beyond the subject's own: C's start-up code, as far as each walk sees it.
START_FRAMES, START_FRAMES_FP = 3, 0
COLD_MIB = 64
# One round: the two that assay is compared with are right beside its turn.
ROUND = ("get_stack", "assay", "sampler")
TRIES = 20


class Side:
    """A subject that is sampled by one program, and stands still unless it is its turn. All are on
    one CPU, so that each finds there what the others find."""

    def __init__(self, command, alone):
        self.subject = machine.start(command)
        os.sched_setaffinity(self.subject.pid, {max(os.sched_getaffinity(0))})
        self.sampler_pid = 0
        if alone:
            machine.keep_others_off(self.subject.pid)

    def stand(self):
        self.subject.send_signal(signal.SIGSTOP)
        machine.wait_until(lambda: machine.is_stopped(self.subject.pid), 10, "A signal")

    def totals(self):
        """Nanoseconds, runs, and samples taken."""
        ns, runs = machine.bpf_totals(self.sampler_pid, PERF_EVENT_PROGRAM)
        return ns, runs, runs

    def turn(self, seconds):
        """Nanoseconds per sample; again when other load left the subject no time."""
        for _ in range(TRIES):
            before = self.totals()
            self.subject.send_signal(signal.SIGCONT)
            time.sleep(seconds)
            self.stand()
            ns, runs, samples = differences(before, self.totals())
            if samples:
                return (ns - (runs - samples) * self.ns_for_others()) / samples
        raise SystemExit(f"The subject got no sample in {TRIES} turns of {seconds} s.")

    def ns_for_others(self):
        return 0

    def close(self):
        machine.stop(self.subject)


class AssaySide(Side):
    """Where there are no cgroups, assay's program also runs for all other processes, and leaves at
    once: what that takes is known from the times when the subject stands, and no part of what a
    sample takes."""

    def __init__(self, tools, command, alone):
        super().__init__(command, alone)
        self.tools, self.group = tools, machine.Group(self.subject.pid)

    def totals(self):
        ns, runs = machine.bpf_totals(self.sampler_pid, PERF_EVENT_PROGRAM)
        return ns, runs, machine.sampler_counters(self.tools, self.sampler_pid)[0]

    def stand(self):
        super().stand()
        if self.sampler_pid:
            self.standing_since = self.totals()

    def turn(self, seconds):
        ns, runs, samples = differences(self.standing_since, self.totals())
        self.others = ns / runs if runs and not samples else 0
        return super().turn(seconds)

    def ns_for_others(self):
        return self.others

    def close(self):
        super().close()
        self.group.close()


def differences(before, after):
    return [b - a for a, b in zip(before, after)]


def start_recording(tools, hz, target, output):
    return machine.start(
        [tools.assay, "record", "-F", str(hz), *target, "-q", "-o", output],
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
        self.work = [str(mib)] if mib else []
        self.alone = not mib  # whoever else had that CPU for a while would cool its caches
        self.figures = {name: [] for name in (*ROUND, "empty")}
        self.mean_frames = {}
        self.late_copies = 0

    def run(self, rounds, seconds, warm_up):
        peers = {name: self.open_peer(name) for name in self.figures if name != "assay"}
        output = os.path.join(self.tools.scratch, "sample.pb.gz")
        side, recorder = self.open_assay(output, warm_up)
        sides = {name: side for name, (side, _) in peers.items()} | {"assay": side}
        _, copies = machine.sampler_counters(self.tools, recorder.pid)
        for _ in range(rounds):
            for name in ROUND:
                self.figures[name].append(sides[name].turn(seconds))
        self.figures["empty"].append(sides["empty"].turn(seconds))
        self.late_copies = machine.sampler_counters(self.tools, recorder.pid)[1] - copies
        self.mean_frames = {name: peer.close() for name, (_, peer) in peers.items()}
        machine.stop(recorder, signal.SIGINT)
        self.mean_frames["assay"] = mean_frames(self.tools, output)
        for side in sides.values():
            side.close()
        return self

    def open_assay(self, output, warm_up):
        command = [self.tools.subject, str(self.frames - START_FRAMES), *self.work]
        side = AssaySide(self.tools, command, self.alone)
        recorder = start_recording(self.tools, self.hz, side.group.options, output)
        machine.wait_for_sample(recorder.pid)
        time.sleep(warm_up)  # for all chains to be known
        machine.wait_for_walks(self.tools, recorder.pid, 0.5, 10)
        side.sampler_pid = recorder.pid
        side.stand()
        return side, recorder

    def open_peer(self, name):
        command = [self.tools.subject_fp, str(self.frames - START_FRAMES_FP), *self.work]
        side = Side(command, self.alone)
        peer = machine.Peer(self.tools, name, self.hz, side.subject.pid)
        machine.wait_for_sample(peer.pid)
        time.sleep(0.1)  # until it works at the bottom of its chain
        side.stand()
        side.sampler_pid = peer.pid
        return side, peer

    def ratios(self, peer):
        return [a / b for a, b in zip(self.figures["assay"], self.figures[peer])]

    def row(self):
        figures = self.figures
        print(
            f"{self.hz:>4} {self.frames:>6} {self.mean_frames['assay']:>6.1f} "
            f"{self.mean_frames['get_stack']:>6.1f} {spread(figures['assay']):>20} "
            f"{spread(figures['get_stack']):>20} {spread(self.ratios('get_stack'), 2):>17} "
            f"{spread(figures['sampler']):>20} {spread(self.ratios('sampler'), 2):>17} "
            f"{figures['empty'][0]:>6.0f}",
            flush=True,
        )
        if self.late_copies:
            print(f"     {self.late_copies} of assay's samples in this row went as copies")

    def verdict(self, verdicts):
        walk, sampler = self.ratios("get_stack"), self.ratios("sampler")
        verdicts.say(
            f"a sample of {self.frames} user frames at {self.hz} Hz takes {spread(walk, 2)} times "
            f"the kernel's own walk; {spread(sampler, 2)} times a bare sampler around that",
            round(median(walk), 2) <= BAR, f"at most {BAR} times the walk",
        )  # fmt: skip


def run(tools, options, verdicts):
    print(
        "Nanoseconds per sample in the kernel: assay's sampler on code without frame pointers,\n"
        "beside the same code with them and bpf_get_stack (the kernel's own walk and nothing\n"
        "else), a bare sampler around that (time, process, command, ring buffer), and a program\n"
        "that does nothing. 999 Hz with warm caches, 99 Hz with cold ones. Turns follow each\n"
        "other on one CPU; ratios are of turns side by side. Median (least-most).\n"
    )
    print(
        f"{'Hz':>4} {'frames':>6} {'assay':>6} {'kernel':>6} {'assay ns':>20} {'get_stack ns':>20} "
        f"{'ratio':>17} {'sampler ns':>20} {'ratio':>17} {'empty':>6}"
    )
    for hz, mib in ((999, 0), (99, COLD_MIB)):
        for frames in (BAR_FRAMES,) if options.quick else (10, BAR_FRAMES, 100, 900):
            rounds = 3 if frames != BAR_FRAMES else 7 if options.quick else 9
            seconds = (0.3 if hz > 500 else 1.0) / (2 if options.quick else 1)
            depth = Depth(tools, frames, hz, mib).run(rounds, seconds, 0.5 if hz > 500 else 2)
            depth.row()
            if frames == BAR_FRAMES:
                depth.verdict(verdicts)
