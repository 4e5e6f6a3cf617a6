#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What watching costs: 100 services, all of which were deployed some hours ago, with the example
rules. See README.md, and watch.sh, which calls this."""

import argparse
import pathlib
import re
import sys
import tempfile
import time

from server import Bench, metrics

SERVICES, HOURS, DEPLOYS_A_DAY, LOOKS_OF_A_DEPLOY = 100, 8, 1, 5
EXAMPLE = pathlib.Path(__file__).parent.parent / "docs" / "rules.example.yaml"


def settle(url, name, still=8):
    """The metrics when a counter has stood still for so many seconds."""
    last, since = -1, time.monotonic()
    while True:
        now = metrics(url)
        if now[name] != last:
            last, since = now[name], time.monotonic()
        elif time.monotonic() - since > still:
            return now
        time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    bench = Bench(parser.parse_args())
    minutes = 10 if bench.quick else 2
    rounds = HOURS * 60 // minutes
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        config = pathlib.Path(folder) / "server.yaml"
        config.write_text(f"rules: {EXAMPLE}\ncost: {{core_hour: 0.04}}\n"
                          "watch: {interval: 1s, cpu: 1}\n")
        print(f"{SERVICES} services on 20 hosts, {HOURS} hours, a profile of each every {minutes} minutes, "
              f"100 rows each; a deploy of all after {HOURS // 4} hours\n", flush=True)  # fmt: skip
        with bench.server("-c", config) as (url, pid):
            bench.simulate(url, pid, "--agents", "20", "--services", str(SERVICES), "--services-per-agent",
                           "5", "--rows", "100", "--stacks-known", "0.99", "--interval", f"{minutes}m",
                           "--rounds", str(rounds), "--from", f"now-{HOURS}h", "--deploy",
                           str(rounds // 4))  # fmt: skip
            began = time.monotonic()
            done = settle(url, "assay_watch_looks_total")
            looks, rounds_of_watch = done["assay_watch_looks_total"], done["assay_watch_rounds_total"]
            idle = metrics(url)
            time.sleep(10)
            later = metrics(url)
            a_round = (later["assay_watch_seconds_total"] - idle["assay_watch_seconds_total"]) / max(
                1, later["assay_watch_rounds_total"] - idle["assay_watch_rounds_total"])
            a_look = (done["assay_watch_seconds_total"] - a_round * rounds_of_watch) / max(1, looks)
            while metrics(url)["assay_rules_rounds_total"] < 2:
                time.sleep(1)
            rules = metrics(url)
            a_rules = rules["assay_rules_seconds_total"] / rules["assay_rules_rounds_total"]
            looks_an_hour = SERVICES * (1 + DEPLOYS_A_DAY * LOOKS_OF_A_DEPLOY / 24)
            watch = (looks_an_hour * a_look + 60 * a_round) / 3600
            evaluation = a_rules / 60
            print(f"        {looks:.0f} comparisons in {time.monotonic() - began:.0f} s, {1000 * a_look:.0f} ms each; "
                  f"{1000 * a_round:.1f} ms for a round without any; {1000 * a_rules:.0f} ms for all rules")  # fmt: skip
            print(f"        an hour has {looks_an_hour:.0f} comparisons, 60 rounds and 60 evaluations: "
                  f"watch {100 * watch:.2f}%, rules {100 * evaluation:.2f}% of a core")  # fmt: skip
            bench.bar(looks >= SERVICES, f"{looks:.0f} comparisons, wanted {SERVICES}")
            bench.bar(done["assay_watch_failed_total"] == 0, "no comparison failed")
            bench.bar(watch + evaluation <= 0.05,
                      f"{100 * (watch + evaluation):.2f}% of a core, wanted 5%")  # fmt: skip
            peak = re.search(r"^VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            bench.bar(int(peak[1]) // 1024 <= 256,
                      f"{int(peak[1]) // 1024} MiB resident at most; memory_limit is 256 MiB")  # fmt: skip
    sys.exit(1 if bench.missed else 0)


if __name__ == "__main__":
    main()
