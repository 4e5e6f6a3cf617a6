# SPDX-License-Identifier: Apache-2.0
"""From the start of the command to the first sample, on a machine with many processes."""

import os
import shutil
import signal
import struct
import subprocess
import time

import machine

PROCESSES = 300
BAR_SECONDS = 1
# In OTLP's messages: resource, scope, profile, sample, and the times of that.
TIMES = (1, 2, 2, 2, 5)


def fields(data):
    """(number, bytes) of each length-delimited field of a protobuf message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        kind = tag & 7
        if kind == 0:
            number()
        elif kind == 2:
            length = number()
            yield tag >> 3, data[at : at + length]
            at += length
        else:
            at += 8 if kind == 1 else 4


def sample_times(data, path=TIMES):
    """Nanoseconds since the epoch, of all samples of a file that `assay record -o x.otlp` wrote."""
    if not path:
        return [value for (value,) in struct.iter_unpack("<Q", data)]
    return [
        time_ns
        for number, inner in fields(memoryview(data))
        if number == path[0]
        for time_ns in sample_times(inner, path[1:])
    ]


def seconds_to_first_sample(tools):
    output = os.path.join(tools.scratch, "start.otlp")
    began = time.time_ns()
    recorder = machine.start(
        [tools.assay, "record", "-a", "-F", "99", "-q", "-d", "1", "-o", output],
        env=tools.environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if recorder.wait(60):
        raise SystemExit("The recording for the first sample failed.")
    machine.stop(recorder)
    with open(output, "rb") as file:
        times = sample_times(file.read())
    return (min(times) - began) / 1e9


def run(tools, options, verdicts):
    load = tools.load()
    print(
        f"From the start of `assay record -a` to its first sample, {PROCESSES} processes asleep\n"
        f"beside {load.name}.\n"
    )
    sleepers = [machine.start([tools.sleeper]) for _ in range(PROCESSES)]
    runs = {"cold": [], "warm": []}
    for _ in range(1 if options.quick else 3):
        shutil.rmtree(tools.environment["ASSAY_CACHE"], ignore_errors=True)
        for name, figures in runs.items():
            figures.append(seconds_to_first_sample(tools))
    for sleeper in sleepers:
        sleeper.send_signal(signal.SIGKILL)
    for sleeper in sleepers:
        machine.stop(sleeper)
    for name, figures in runs.items():
        verdicts.say(
            f"the first sample comes after {machine.spread(figures, 2)} s, with {name} tables",
            machine.median(figures) <= BAR_SECONDS, f"at most {BAR_SECONDS} s",
        )  # fmt: skip
