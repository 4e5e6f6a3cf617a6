#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agrees.py busy|switch RECORDING <TRUTH: what subjects/switches.c says of itself against a recording
of it."""

import math
import os
import re
import subprocess
import sys

import recording


def totals(path, kind):
    """Seconds by function of the rows whose type is `kind`, and in which states."""
    found, states = {}, {}
    for sample in recording.read(path, kind):
        state = sample.labels.get("state", "")
        states[state] = states.get(state, 0) + sample.cpu_ns / 1e9
        for name in {frame.name for frame in sample.frames}:
            found[name, state] = found.get((name, state), 0) + sample.cpu_ns / 1e9
    return found, states


def main():
    what, path = sys.argv[1:3]
    truth = {name: float(value) for name, value in (line.split() for line in sys.stdin)}
    if what == "busy":
        cpu = sum(totals(path, "cpu")[1].values())
        running = totals(path, "wall")[1]["running"]
        print(f"CPU samples {cpu:.3f} s, running {running:.3f} s, by its own clock {truth['busy']:.3f} s")
        assert abs(cpu - running) <= 0.02 * running
        assert abs(running - truth["busy"]) <= 0.02 * truth["busy"] + 0.01
        return
    found, _ = totals(path, "wall")
    text = subprocess.run([os.environ["ASSAY"], "info", path], check=True, capture_output=True,
                          text=True).stdout
    waits = float(re.search(r"wall time: other .* effective waits ([0-9.]+)", text).group(1))
    # The program can't tell waiting from waiting for a CPU.
    both = {name: found.get((name, "other"), 0) + found.get((name, "runnable"), 0)
            for name in ("waits_short", "waits_long")}
    share = both["waits_long"] / sum(both.values())
    expected = truth["waits_long"] / (truth["waits_long"] + truth["waits_short"])
    error = math.sqrt(expected * (1 - expected) / waits)
    print(f"{truth['count']:.0f} waits; share of waits_long {share:.3f}, expected {expected:.3f} "
          f"+- {error:.3f}, of {waits:.0f} effective waits")
    assert abs(share - expected) <= 5 * error + 0.02
    assert abs(sum(both.values()) - truth["waits_long"] - truth["waits_short"]) <= (
        0.1 * (truth["waits_long"] + truth["waits_short"]))


main()
