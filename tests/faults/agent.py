#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of an agent fail in turn: agent.py POINTS WINDOWS URL KIND... ($ASSAY, $FAULTS_LIBRARY).

While it starts, one call or five in a row fail at POINTS places of each kind: the agent samples in
some way, or ends with a message and a status, never by a signal. While it runs, five calls fail in
each of WINDOWS windows: it goes on, and sends the windows after them."""

import argparse, json, os, shutil, signal, subprocess, sys, time

from faults import ERRORS, Faults, spread

STARTS_S, WINDOW_S = 300, 10


class Agent:
    def __init__(self, faults, url):
        self.faults, self.url, self.runs = faults, url, 0

    def start(self):
        self.runs += 1
        self.log = f"agent-{self.runs}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [os.environ["ASSAY"], "agent", "--server", self.url, "--data", os.path.abspath("agent"),
                 "--config", "generous.yaml"], stderr=log, env=self.faults.environment())
        deadline = time.monotonic() + STARTS_S
        while self.process.poll() is None and "Sampling by" not in self.text():
            if time.monotonic() > deadline:
                sys.exit(f"It neither samples nor ends:\n{self.text()}")
            time.sleep(0.02)
        return self.process.poll() is None

    def text(self):
        with open(self.log) as log:
            return log.read()

    def stop(self, faulty=False):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=300):
            if faulty and self.process.returncode == -signal.SIGABRT and "out of memory" in self.text():
                return False
            sys.exit(f"It ended with {self.process.returncode} when asked to stop:\n{self.text()}")
        return True

    def explained(self, what):
        status, text = self.process.returncode, self.text()
        if not (status > 0 or status == -signal.SIGABRT and "out of memory" in text) or not text.strip():
            sys.exit(f"{what}: it ended with {status}:\n{text}")

    def status(self):
        done = subprocess.run([os.environ["ASSAY"], "agent", "status", "--data", os.path.abspath("agent"),
                               "--json"], capture_output=True, check=True)
        return json.loads(done.stdout)


def forget(kind):
    """What an agent writes when it starts, it writes once: that has to be missing again."""
    if kind in ("write", "sync"):
        shutil.rmtree("agent", ignore_errors=True)


def starting(agent, kind, points):
    forget(kind)
    before = agent.faults.seen(kind)
    if not agent.start():
        sys.exit("It doesn't start without faults:\n" + agent.text())
    total = agent.faults.seen(kind) - before
    if not total:
        sys.exit(f"There is no place where {kind} could fail while it starts.")
    agent.stop()
    started = explained = 0
    fired = agent.faults.failed(kind)
    for i, place in enumerate(spread(total, points)):
        forget(kind)
        agent.faults.arm(kind, place, 1 if i % 3 else 5, ERRORS[kind][i % len(ERRORS[kind])])
        samples = agent.start()
        agent.faults.disarm()
        if samples:
            samples = agent.stop(faulty=True)  # the first moments of sampling belong to the start
        else:
            agent.explained(f"start, {kind} {place}")
        started, explained = started + samples, explained + (not samples)
    if points and agent.faults.failed(kind) == fired:
        sys.exit(f"None of the faults of {kind} at {total} places happened while it started.")
    print(f"starting  {kind:7} {total:6} places: {started} starts, {explained} messages", flush=True)


def running(agent, kind, windows):
    if not agent.start():
        sys.exit("It doesn't start without faults:\n" + agent.text())
    fired = agent.faults.failed(kind)
    for i in range(windows):
        agent.faults.arm(kind, 7 * i, 5, ERRORS[kind][i % len(ERRORS[kind])])
        time.sleep(WINDOW_S)  # the period of the calls that are to fail
        agent.faults.disarm()
        if agent.process.poll() is not None:
            sys.exit(f"{kind}: the agent ended with {agent.process.returncode}:\n{agent.text()}")
    fired = agent.faults.failed(kind) - fired
    before, deadline = agent.status(), time.monotonic() + 300
    while True:
        now = agent.status()
        if now["uploads"] > before["uploads"] and now["spool_batches"] == 0:
            break
        if time.monotonic() > deadline or agent.process.poll() is not None:
            sys.exit(f"{kind}: nothing is sent after the faults: {now}\n{agent.text()}")
        time.sleep(0.5)
    agent.stop()
    print(f"running   {kind:7} {fired:4} faults: windows after them were sent", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("points", type=int)
    parser.add_argument("windows", type=int)
    parser.add_argument("url")
    parser.add_argument("kinds", nargs="+")
    arguments = parser.parse_args()
    agent = Agent(Faults(), arguments.url)
    try:
        for kind in arguments.kinds:
            starting(agent, kind, arguments.points)
            if arguments.windows:
                running(agent, kind, arguments.windows)
    finally:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait()


main()
