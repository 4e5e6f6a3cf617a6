#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what assay reads from flight recordings with what the JDK's `jfr print` says.

For every kind of event: the sum over each whole stack (through assay's folded stacks), the sum over
each thread (through the label `thread`), and the number of events that `jfr summary` counts. The
program is $ASSAY.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

# Event: the type that counts it, the type that weighs it and the field with the weight.
EVENTS = {
    "jdk.ExecutionSample": ("samples", None, None),
    "jdk.NativeMethodSample": ("native_samples", None, None),
    "jdk.ObjectAllocationInNewTLAB": (
        "alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes", "tlabSize"),
    "jdk.ObjectAllocationOutsideTLAB": (
        "alloc_outside_tlab_objects", "alloc_outside_tlab_bytes", "allocationSize"),
    "jdk.ObjectAllocationSample": ("alloc_sample_objects", "alloc_sample_bytes", "weight"),
    "jdk.JavaMonitorEnter": ("lock_contentions", "lock_delay", "duration"),
    "jdk.ThreadPark": ("park_contentions", "park_delay", "duration"),
}  # fmt: skip


def run(*command):
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # or else jfr prints ? for what is not ASCII
    result = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=300, env=environment)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\nexits with {result.returncode}: {result.stderr}")
    return result.stdout


def assay(*arguments):
    return run(os.environ["ASSAY"], *arguments)


def nanoseconds(text):
    """`PT1M2.003S`."""
    match = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    return (hours * 60 + minutes) * 60 * 10**9 + seconds * 10**9 + int(
        (match[4] or "").ljust(9, "0"))


def stack_of(values):
    """Outermost first, as folded stacks are."""
    trace = values["stackTrace"]
    if not trace or not trace["frames"]:
        return "[no stack]"
    names = []
    for frame in trace["frames"]:
        method = frame["method"]
        owner = ((method["type"] or {}).get("name") or "").replace("/", ".")
        names.append((owner + "." if owner else "") + method["name"])
    return ";".join((["[truncated]"] if trace["truncated"] else []) + names[::-1])


def thread_of(values):
    thread = values.get("sampledThread") or values.get("eventThread") or {}
    return thread.get("javaName") or thread.get("osName") or ""


def sums_of_jfr(path):
    stacks, threads, counts = {}, {}, collections.Counter()
    text = run("jfr", "print", "--json", "--stack-depth", "4096", "--events", ",".join(EVENTS), path)
    for event in json.loads(text)["recording"]["events"]:
        values = event["values"]
        count, weight, field = EVENTS[event["type"]]
        counts[event["type"]] += 1
        weights = {count: 1}
        if weight:
            value = values[field]
            weights[weight] = nanoseconds(value) if isinstance(value, str) else value
        for name, value in weights.items():
            stacks.setdefault(name, collections.Counter())[stack_of(values)] += value
            threads.setdefault(name, collections.Counter())[thread_of(values)] += value
    return stacks, threads, counts


def summary_of_jfr(path):
    rows = re.findall(r"^ *(\S+) +(\d+) +\d+ *$", run("jfr", "summary", path), re.MULTILINE)
    return {name: int(count) for name, count in rows if name in EVENTS and int(count)}


def folded(path, sample_type):
    sums = collections.Counter()
    arguments = ("convert", path, "--original-names", "--to", "folded", "-t", sample_type, "-o", "-")
    for line in assay(*arguments).split("\n"):
        if line:
            stack, value = line.rsplit(" ", 1)
            sums[stack] += int(value)
    return sums


def total(path, sample_type, *flags):
    text = assay("report", path, "--sample-type", sample_type, "--format", "json", *flags)
    return json.loads(text)["shown"]


def differences(name, expected, got):
    return [
        f"    {name}: {key[-120:]!r}: jfr {expected.get(key)}, assay {got.get(key)}"
        for key in sorted(expected.keys() | got.keys())
        if expected.get(key, 0) != got.get(key, 0)
    ]


def compare(path):
    """(number of comparisons, lines about what differs, types seen)"""
    stacks, threads, counts = sums_of_jfr(path)
    lines = differences("events", summary_of_jfr(path), counts)
    compared = len(counts)
    for sample_type, expected in stacks.items():
        lines += differences(sample_type, expected, folded(path, sample_type))
        whole = {"": sum(expected.values())}
        lines += differences(f"total of {sample_type}", whole, {"": total(path, sample_type)})
        compared += len(expected) + 1
        # Many threads make many runs of assay: the largest will do.
        largest = dict(threads[sample_type].most_common(5))
        if "" not in largest:
            got = {name: total(path, sample_type, "--tag", f"thread={name}") for name in largest}
            lines += differences(f"{sample_type} of thread", largest, got)
            compared += len(largest)
    return compared, lines, set(counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--expect-all", help="a file that must have nearly every kind of event")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    compared, failed = 0, []
    for path in options.files:
        count, lines, seen = compare(path)
        compared += count
        if path == options.expect_all:
            # JDK 11 has no jdk.ObjectAllocationSample.
            missing = set(EVENTS) - seen - {"jdk.NativeMethodSample", "jdk.ObjectAllocationSample"}
            lines += [f"    the recording has no {name}" for name in sorted(missing)]
        if lines:
            failed += [f"{path}:"] + lines[:20]
    print(f"{compared} comparisons with jfr over {len(options.files)} files.")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
