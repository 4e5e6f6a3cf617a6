# SPDX-License-Identifier: Apache-2.0
"""What a recording leaves, and how long it takes to be a picture, beside perf over the same
seconds."""

import os
import shutil
import subprocess
import time

import machine
import recording

SIZE_BAR, SPEED_BAR = 100, 10
DWARF = ("--call-graph", "dwarf")


def timed(command, most_seconds, **options):
    """Wall and CPU seconds; a command that takes longer is ended."""
    began = time.monotonic()
    process = machine.start(command, stderr=subprocess.DEVNULL, **options)
    try:
        usage = machine.wait_and_measure(process, most_seconds)
    except subprocess.TimeoutExpired:
        machine.stop(process)
        return most_seconds, most_seconds, True
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, False


def draw_perf(tools, data, most_seconds):
    """The same by perf, in parts: its text, then folding and drawing that, by assay."""
    text, picture = (os.path.join(tools.scratch, name) for name in ("perf.txt", "perf.html"))
    with open(text, "wb") as file:
        script, script_cpu, cut = timed(
            [tools.perf, "script", "-i", data], most_seconds, stdout=file
        )
    flame, flame_cpu, _ = timed([tools.assay, "flame", text, "-o", picture], 60)
    text_mib = os.path.getsize(text) / 2**20
    print(
        f"  perf script          {script:>8.2f} s {script_cpu:>8.2f} s of CPU"
        f"{' (ended there: it takes longer)' if cut else ''}, {text_mib:.1f} MiB of text\n"
        f"  assay flame on that  {flame:>8.2f} s {flame_cpu:>8.2f} s of CPU"
    )
    return script + flame


def draw_assay(recorder, name):
    recorder.interrupt()
    recorder.end()
    print(
        f"  assay, {name:<13} {recorder.end_seconds:>8.2f} s {recorder.end_cpu:>8.2f} s of CPU, "
        f"{recorder.end_mib:.0f} MiB"
    )
    return recorder.end_seconds


def record_all(tools, seconds):
    """assay into a file and into a page, and perf, at once. The page is left to be ended."""
    shutil.rmtree(tools.environment["ASSAY_CACHE"], ignore_errors=True)
    file, page = recording.assay(tools, "same.pb.gz"), recording.assay(tools, "cold.html")
    for recorder in (file, page):
        machine.wait_for_sample(recorder.pid)
    theirs = recording.perf(tools, "same.data", *DWARF)  # is the last to begin
    time.sleep(seconds)
    for recorder in (theirs, file):
        recorder.interrupt()
    for recorder in (theirs, file):
        recorder.end()
    return file, page, theirs


def compare(tools, seconds, most_seconds, verdicts):
    print(f"\n  {seconds} s, from Ctrl-C to a flame graph:")
    file, page, theirs = record_all(tools, seconds)
    own_seconds = {"cold": draw_assay(page, "cold cache")}
    page = recording.assay(tools, "warm.html")
    machine.wait_for_sample(page.pid)
    time.sleep(seconds)
    own_seconds["warm"] = draw_assay(page, "warm cache")
    perf_seconds = draw_perf(tools, theirs.output, most_seconds)
    sizes = [os.path.getsize(side.output) for side in (file, theirs)]
    print(f"  Files: assay {sizes[0] / 1024:.0f} KiB, perf.data {sizes[1] / 1024:.0f} KiB")
    verdicts.say(
        f"the file of {seconds} s is 1/{sizes[1] / sizes[0]:.0f} of perf.data",
        sizes[0] * SIZE_BAR <= sizes[1], f"at most 1/{SIZE_BAR}",
    )  # fmt: skip
    for name, own in own_seconds.items():
        verdicts.say(
            f"the flame graph of {seconds} s is there {perf_seconds / own:.1f} times as fast, "
            f"with a {name} cache",
            perf_seconds >= SPEED_BAR * own, f"at least {SPEED_BAR} times",
        )  # fmt: skip


def run(tools, options, verdicts):
    """A short recording and one as people make them: perf takes as long for each sample, and we for
    each binary."""
    load = tools.load()
    print(f"{load.name} at {recording.HZ} Hz, recorded by both at once.")
    for seconds in (8,) if options.quick else (10, 60):
        compare(tools, seconds, 15 if options.quick else 120, verdicts)
