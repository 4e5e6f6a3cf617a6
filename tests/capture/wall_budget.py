#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wall_budget.py ASSAY SHARE SECONDS COMMAND...: records waits of the command, whose programs may
take SHARE of all CPUs, and prints what they took, second by second, by the kernel's accounts. The
exit status is 1 when that is more than twice the share in any ten seconds."""

import os
import subprocess
import sys
import time

CPUS = os.cpu_count()
WINDOW_SECONDS, EXCESS = 10, 2
KIND_TRACING = "26"  # BPF_PROG_TYPE_TRACING: programs of the scheduler's tracepoints


def programs(pid):
    """Seconds and runs of the process's BPF programs at tracepoints."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            lines = open(f"/proc/{pid}/fdinfo/{name}").read().splitlines()
        except OSError:
            continue
        values = dict(line.split(":", 1) for line in lines if ":" in line)
        if values.get("prog_type", "").strip() == KIND_TRACING:
            found[values["prog_id"]] = int(values["run_time_ns"]), int(values["run_cnt"])
    return sum(value[0] for value in found.values()) / 1e9, sum(value[1] for value in found.values())


def main():
    assay, share, seconds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    recorder = subprocess.Popen([assay, "record", "-q", "-m", "wall", "-o", "budget.pb.gz", "--",
                                 *sys.argv[4:]],
                                env={**os.environ, "ASSAY_WAITS_SHARE": str(share)})  # fmt: skip
    moments = [(time.monotonic(), 0.0, 0)]
    for _ in range(seconds):
        time.sleep(1)
        moments.append((time.monotonic(), *programs(recorder.pid)))
    recorder.wait()
    for before, after in zip(moments, moments[1:]):
        print(f"{(after[1] - before[1]) / (after[0] - before[0]) / CPUS:.3%} of all CPUs, "
              f"{after[2] - before[2]} runs")
    shares = [(after[1] - before[1]) / (after[0] - before[0]) / CPUS
              for before, after in zip(moments, moments[WINDOW_SECONDS:])]
    print("windows of ten seconds: " + ", ".join(f"{value:.3%}" for value in shares))
    assert shares and moments[-1][2] > 0
    sys.exit(max(shares) > EXCESS * share)


main()
