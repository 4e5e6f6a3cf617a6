#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the measurements of capture.sh and says which bars were held."""

import argparse
import os
import platform
import shutil
import sys
import tempfile

import load
import machine
import per_sample
import recording
import results
import starting

MEASUREMENTS = {
    "sample": per_sample.run, "recording": recording.run, "start": starting.run,
    "results": results.run,
}  # fmt: skip


class Tools:
    """Where things are. The cache of unwind tables is one of our own, empty at first."""

    def __init__(self, build, scratch):
        bench = os.path.join(build, "bench")
        self.assay = os.path.join(build, "assay")
        self.peer = os.path.join(bench, "bench-peer")
        self.peers_object = os.path.join(bench, "peers.bpf.o")
        self.subject = os.path.join(bench, "bench-subject")
        self.subject_fp = os.path.join(bench, "bench-subject-fp")
        self.sleeper = os.path.join(bench, "bench-sleeper")
        self.perf = shutil.which("perf")
        if not self.perf:
            raise SystemExit("There is no perf here to compare with: install linux-perf.")
        self.scratch = scratch
        self.environment = dict(
            os.environ, ASSAY_SAMPLER="bpf", ASSAY_CACHE=os.path.join(scratch, "cache")
        )
        self._load = None

    def load(self):
        """What keeps the machine busy: started when first asked for, and there until the end."""
        self._load = self._load or load.start(self)
        return self._load

    def close(self):
        if self._load:
            self._load.close()


def say_machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    print(
        f"{model}, {machine.CPUS} cores, Linux {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f}\n"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--only", choices=MEASUREMENTS, help="one measurement instead of all")
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="bench-capture-")
    verdicts = machine.Verdicts()
    tools = Tools(options.build, scratch)
    try:
        say_machine()
        machine.keep_statistics(tools)
        for name, measure in MEASUREMENTS.items():
            if options.only in (None, name):
                measure(tools, options, verdicts)
                print()
    finally:
        tools.close()
        machine.stop_all()
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(f"{len(verdicts.missed)} bars missed." if verdicts.missed else 0)


main()
