#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the tests of every build folder and adds up:
run.py [--long] [--changed] [--plain] [NAME...]
with names (or parts of names) of tests to run. The last line is `N passed, M failed`, followed by
what is unsteady or skipped; the exit status is 1 when anything failed. Tests run side by side on
machines that others use, too. So a few that fail are run once more, one at a time: what fails alone
has failed; what then passes is listed as unsteady, with the output of the failure. So is a test
about chance that needed more than one attempt. With --long, an unsteady test fails the run. Called
by ./dev test."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

import changed

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILDS = {
    "build": "optimised build",
    "build-asan": "build with AddressSanitizer and UBSan",
    "build-fuzz": "fuzzers",  # with --long; the sanitized build reads their seeds
}
EXCERPT_LINES, EXCERPT_COLUMNS = 40, 400
FUZZ_SECONDS = 300  # each
SLOWEST = 20
CHANGED_SECONDS = 110  # with --changed, for building and testing
AGAIN = 6  # more failures than that are no accident


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: list = dataclasses.field(default_factory=list)  # "name: reason"
    excerpts: list = dataclasses.field(default_factory=list)  # of failures
    unsteady: list = dataclasses.field(default_factory=list)  # excerpts of failed attempts
    seconds: float = 0
    cpu_seconds: float = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.excerpts += other.excerpts
        self.unsteady += other.unsteady
        self.cpu_seconds += other.cpu_seconds

    def line(self):
        text = f"{self.passed} passed, {self.failed} failed"
        text += f", {len(self.unsteady)} unsteady" if self.unsteady else ""
        return text + (f", {len(self.skipped)} skipped" if self.skipped else "")


TAP_LINE = r"(?:1\.\.\d+$|(?:not )?ok\b)"  # the plan, and results


def last_line(text):
    """The last line that says something, or None: TAP's own lines are no reason for anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line.removeprefix("# ") for line in lines if not re.match(TAP_LINE, line)]
    return lines[-1] if lines else None


def skip(tally, name, reason):
    """A skip says why, or it is a failure."""
    if reason:
        tally.skipped.append(f"{name}: {reason}")
    else:
        tally.failed += 1
        tally.excerpts.append(excerpt(f"{name} (skipped without a reason)", ""))


def excerpt(name, text):
    lines = [line for line in text.rstrip().splitlines() if not re.match(r"ok\b", line)]
    lines = lines[-EXCERPT_LINES:]
    return "\n".join([f"failed: {name}"] + ["    " + line[:EXCERPT_COLUMNS] for line in lines])


def tally_of(entry):
    """Counts one entry of meson's log: as its TAP lines where it prints them, else as one test."""
    name = entry["name"].split(" / ")[-1].split(":")[-1]
    output = entry.get("stdout") or ""
    said = ""  # since the last result
    tally = Tally(seconds=entry.get("duration") or 0)
    if entry["result"] == "SKIP":
        skip(tally, name, last_line(output))
        return tally
    for line in output.splitlines():
        tap = re.match(r"(ok|not ok)\b(?: \d+)?(?: -)? ?(.*)$", line)
        if not tap:
            said += line + "\n"
            continue
        if skipped := re.match(r"(.*?)\s*# SKIP ?(.*)$", tap[2]):
            # cmocka gives the name and no reason: what the case printed before stands for it.
            reason = skipped[2] if skipped[1] else last_line(said)
            skip(tally, f"{name}/{skipped[1] or skipped[2]}", reason)
        elif tap[1] == "ok":
            tally.passed += 1
        else:
            tally.failed += 1
        said = ""
    if entry["result"] == "OK":
        # node's test runner gives its count at the end.
        if count := re.search(r"^(?:#|ℹ) pass (\d+)$", output, re.MULTILINE):
            tally.passed = int(count[1])
        elif not tally.passed and not tally.failed and not tally.skipped:
            tally.passed = 1
        if re.search(r"^# attempt \d+ of \d+ failed", output, re.MULTILINE):
            tally.unsteady.append(excerpt(f"{name} (an attempt)", output))
    else:
        tally.failed = max(tally.failed, 1)
        told = output + (entry.get("stderr") or "")
        tally.excerpts.append(excerpt(f"{name} ({entry['result'].lower()})", told))
    return tally


def selected_tests(build, options):
    """Those of the suite `long` run with --long only, those of `rare` also by name."""
    listing = subprocess.run(
        ["meson", "introspect", "--tests", build], cwd=ROOT, check=True, capture_output=True
    )
    for test in json.loads(listing.stdout):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        wanted = not options.names or any(name in test["name"] for name in options.names)
        left_out = {"long"} if options.names else {"long", "rare"}
        if wanted and (options.long or not suites & left_out):
            yield test["name"]


def targets_of(build, names):
    """What these tests need built, as ninja knows it."""
    tests, targets = (
        json.loads(subprocess.run(["meson", "introspect", what, build], cwd=ROOT, check=True,
                                  capture_output=True).stdout)
        for what in ("--tests", "--targets")
    )  # fmt: skip
    needed = {target for test in tests if test["name"] in names for target in test["depends"]}
    outputs = [file for target in targets if target["id"] in needed for file in target["filename"]]
    outputs = [os.path.relpath(file, ROOT / build) for file in outputs]
    return outputs if build == "build-fuzz" else [*outputs, "tests/account"]


def changed_tests(build, names, started):
    """Of these, built, those that a change can break and that fit into the time. What building took
    isn't known before: a header that all include leaves little for tests."""
    plan = changed.Plan(ROOT, names, build)

    def fitting():
        left = max(CHANGED_SECONDS - (time.monotonic() - started), 0)
        return plan.choose(left * len(os.sched_getaffinity(0)))

    done = ninja(build, *targets_of(build, fitting()))
    chosen = fitting()
    print(f"{plan.what}: {len(chosen)} tests run; {len(plan.tests) - len(chosen)} more depend on them "
          "and don't fit.", flush=True)
    return done, chosen


def read_accounts(build, file):
    """CPU seconds of each test by its name: account.c has written them by command."""
    listing = subprocess.run(
        ["meson", "introspect", "--tests", build], cwd=ROOT, check=True, capture_output=True
    )
    names = {"\t".join(test["cmd"]): test["name"] for test in json.loads(listing.stdout)}
    accounts = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else ():
        taken, _, command = line.partition("\t")
        if command in names:
            accounts[names[command]] = accounts.get(names[command], 0) + int(taken) / 1000
    return accounts


def save_durations(build, tallies):
    """For the next --changed."""
    path = ROOT / build / "durations.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known |= {name: [tally.seconds, tally.cpu_seconds] for name, tally in tallies.items()}
    path.write_text(json.dumps(known), encoding="utf-8")


def processes(build):
    """Most tests wait for something most of their time: for a server, a window, a condition. Those of
    the sanitized build do so less."""
    cpus = len(os.sched_getaffinity(0))
    return {"build": cpus + 3, "build-asan": cpus + 1}.get(build, cpus)


def account(build):
    """Fuzzers have none."""
    program = ROOT / build / "tests" / "account"
    return ["--wrapper", str(program)] if program.exists() else []


def run_meson(build, names, options, side_by_side):
    """Runs the tests and returns the tally of each by its name; meson itself stays quiet."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LC_")}
    environment |= {"LC_ALL": "C", "TZ": "UTC"}
    # A signal cannot be mistaken for an exit status that a test expects.
    environment["ASAN_OPTIONS"] = "abort_on_error=1"
    environment["UBSAN_OPTIONS"] = "abort_on_error=1:halt_on_error=1:print_stacktrace=1"
    environment.setdefault("FUZZ_SECONDS", str(FUZZ_SECONDS))
    logs = ROOT / build / "meson-logs"
    base = f"run-{os.getpid()}"  # a log of our own: somebody else may be testing here, too
    environment["ACCOUNT"] = str(logs / f"{base}.accounts")
    result = subprocess.run(
        ["meson", "test", "-C", build, "--no-rebuild", "--logbase", base,
         "--num-processes", str(side_by_side), *account(build), *names],
        cwd=ROOT, env=environment, check=False, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    tallies = {}
    # meson adds the wrapper's name.
    for log in logs.glob(f"{base}[.-]*json"):
        for line in log.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line:
                entry = json.loads(line)
                tallies[entry["name"].split(" / ")[-1].split(":")[-1]] = tally_of(entry)
    for name, seconds in read_accounts(build, logs / f"{base}.accounts").items():
        if name in tallies:
            tallies[name].cpu_seconds = seconds
    for file in logs.glob(f"{base}[.-]*"):
        file.unlink()
    if result.returncode and not any(tally.failed for tally in tallies.values()):
        tallies["meson"] = Tally(failed=1, excerpts=[excerpt(f"meson test -C {build}", result.stdout)])
    return tallies


def run_again(tallies, run):
    """Has the few that failed run once more by run(names), each with the machine to itself."""
    failed = [name for name, tally in tallies.items() if tally.failed]
    if not 0 < len(failed) <= AGAIN or "meson" in failed:
        return
    for name, tally in run(failed).items():
        if not tally.failed:
            tally.unsteady += tallies[name].excerpts
        tally.seconds += tallies[name].seconds
        tally.cpu_seconds += tallies[name].cpu_seconds
        tallies[name] = tally


def ninja(build, *targets):
    return subprocess.run(
        ["ninja", "-C", build, *targets], cwd=ROOT, check=False, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run_build(build, options, durations, started):
    """The tally of one build folder, or None when none of its tests was asked for. How long each
    test took is added to `durations`, by (build, name)."""
    done = ninja(build, "build.ninja")  # configures again when a meson.build has changed
    names = [] if done.returncode else list(selected_tests(build, options))
    if options.changed and names:
        done, names = changed_tests(build, names, started)
    elif names:
        done = ninja(build, *(targets_of(build, names) if options.names else ()))
    if done.returncode:
        return Tally(failed=1, excerpts=[excerpt(f"ninja -C {build}", done.stdout)])
    if not names:
        return None
    tallies = run_meson(build, names, options, processes(build))
    if build != "build-fuzz":  # a finding is one, whatever else ran
        run_again(tallies, lambda failed: run_meson(build, failed, options, 1))
    save_durations(build, tallies)
    total = Tally()
    for name, tally in tallies.items():
        total.add(tally)
        durations[build, name] = tally.seconds, tally.cpu_seconds
    return total


def print_slowest(durations):
    slowest = sorted(durations.items(), key=lambda item: -item[1][0])[:SLOWEST]
    print("slowest: " + ", ".join(f"{name} {seconds:.0f} s, CPU {cpu_seconds:.0f} s ({build})"
                                  for (build, name), (seconds, cpu_seconds) in slowest))


def cpu_seconds_so_far():
    """Of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="fuzz longer and run tests/long")
    parser.add_argument("--changed", action="store_true",
                        help="in the optimised build, what the change can break, in two minutes")
    parser.add_argument("--plain", action="store_true", help="in the optimised build only")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    total, durations, started = Tally(), {}, time.monotonic()
    for build, title in BUILDS.items():
        if (options.changed or options.plain) and build != "build":
            continue
        if build == "build-fuzz" and not options.long:
            continue
        start, cpu_start = time.monotonic(), cpu_seconds_so_far()
        tally = run_build(build, options, durations, started)
        if not tally:
            continue
        print(f"{title}: {tally.line()} ({time.monotonic() - start:.0f} s; CPU time "
              f"{cpu_seconds_so_far() - cpu_start:.0f} s, {tally.cpu_seconds:.0f} s of it in tests)", flush=True)
        for text in tally.excerpts:
            print(text, flush=True)
        for text in tally.unsteady:
            print("unsteady, " + text, flush=True)
        for reason in tally.skipped:
            print(f"skipped: {reason}", flush=True)
        total.add(tally)
    if options.names and not (total.passed or total.failed or total.skipped):
        print(f"No test is called anything like {' or '.join(options.names)}.")
        total.failed = 1
    if not options.names:
        print_slowest(durations)
    if options.long and total.unsteady:
        print("Unsteady tests fail a long run.")
    print(total.line())
    sys.exit(1 if total.failed or (options.long and total.unsteady) else 0)


if __name__ == "__main__":
    main()
