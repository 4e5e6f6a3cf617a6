#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of a server fail in turn: server.py POINTS KIND... ($ASSAY, $FAULTS_LIBRARY).

For each kind of call, a run without faults counts how many a fixed list of requests needs; then one
of them fails at a time, at POINTS places. The server goes on, answers each request, and has what it
acknowledged, also after kill -9. Failed allocations below 64 KiB may end it with a message. The same
for the calls of a start: it starts, or says why not."""

import argparse, http.client, json, os, re, signal, subprocess, sys, time

import load as loads
from faults import ERRORS, Faults, spread

LARGE_STACKS = 6000  # several tables of more than 64 KiB while they are read and stored
LARGE_VARIANTS = 16
QUERY = "query=process_cpu:samples:count::%7Bservice_name%3D%22{}%22%7D&from=1980-01-01&to=now%2B1d"
RECOVERY_S = 300
ANSWER_S = 300


class FaultyServer(loads.Server):
    def __init__(self, arguments, faults):
        super().__init__(arguments)
        self.faults = faults

    def start(self, wait=True):
        self.runs += 1
        self.log = open(f"server-{self.runs}.log", "w+")
        self.process = subprocess.Popen(
            [os.environ["ASSAY"], "server", "--listen", "127.0.0.1:0", "--data", self.arguments.data,
             "-c", "load.yaml"], stderr=self.log, stdout=self.log, env=self.faults.environment())
        if wait:
            self.await_address()


class Exercise:
    """The requests, one after the other, and what came of each."""

    def __init__(self, server, load):
        self.server, self.load, self.number, self.day, self.spans = server, load, 0, 0, 0
        self.connection = None

    def request(self, method, path, body=None, headers=None):
        """The status, or None when the connection ended without an answer."""
        for _ in range(2):  # a connection that the last fault closed is opened again
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_S)
            try:
                self.connection.request(method, path, body, headers or {})
                answer = self.connection.getresponse()
                text = answer.read()
                if answer.will_close:
                    self.close()
                if answer.status >= 400 and not text:
                    sys.exit(f"{path} was answered {answer.status} without a reason.")
                return answer.status
            except TimeoutError:
                sys.exit(f"{path} was not answered:\n{self.server.text()[-2000:]}")
            except (OSError, http.client.HTTPException):
                self.close()
                if fresh:
                    return None
        return None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def push(self):
        batch = self.load.take()
        status = self.request("POST", "/push.v1.PusherService/Push", batch.body,
                              {"Content-Type": "application/proto", "X-Assay-Batch-Id": batch.id})
        if status == 200:
            self.load.acknowledged[batch.number] = batch
        elif status is None:
            self.load.unsure[batch.number] = batch
        else:
            self.load.retry.append(batch)
        return status

    def push_large(self):
        self.number += 1
        # New stacks at first; not for ever, since answers about all of them have to fit the memory.
        variant = self.number % LARGE_VARIANTS
        lines = [f"main;a{i};n{variant}b{i * 7 % 911};c{i} 1\n" for i in range(LARGE_STACKS)]
        body = "".join(lines).encode()
        return self.request("POST", f"/api/v1/push?service=large{self.number % 2}&from=now-10s", body)

    def push_old(self):
        """Into a day that has no file yet."""
        self.day += 1
        return self.request("POST", f"/api/v1/push?service=old&from=now-{self.day}d", b"main;old 1\n")

    def push_spans(self):
        self.spans += 1
        now_ns = time.time_ns()
        spans = [{"traceId": f"{self.spans:028x}{i:04x}", "spanId": f"{i + 1:016x}", "name": "request", "kind": 2,
                  "startTimeUnixNano": str(now_ns - 1_000_000), "endTimeUnixNano": str(now_ns)} for i in range(50)]
        service = {"key": "service.name", "value": {"stringValue": "load0"}}
        body = {"resourceSpans": [{"resource": {"attributes": [service]}, "scopeSpans": [{"spans": spans}]}]}
        return self.request("POST", "/v1/traces", json.dumps(body), {"Content-Type": "application/json"})

    def save(self):
        """What people keep: files that are replaced as a whole."""
        view = json.dumps({"name": "one", "address": f"/explore?n={self.number}"})
        mark = json.dumps({"text": f"mark {self.number}"})
        yield self.request("POST", "/api/v1/views", view, {"Content-Type": "application/json"})
        yield self.request("POST", "/api/v1/marks", mark, {"Content-Type": "application/json"})
        yield self.request("POST", "/api/v1/baselines?name=one&replace=true", b"main;leaf 1\n")

    def run(self):
        statuses = [self.push(), self.push_large(), self.push(), self.push_old(), self.push_spans()]
        # Of these, 201 says that something is new.
        statuses += [200 if status == 201 else status for status in self.save()]
        for path in ["flame", "top", "profile", "labels", "series", "timeseries"]:
            service = f"large{self.number % 2}" if path in ("flame", "top", "profile") else "load0"
            statuses.append(self.request("GET", f"/api/v1/{path}?" + QUERY.format(service)))
        for path in ["/api/v1/requests", "/api/v1/health", "/metrics", "/"]:
            statuses.append(self.request("GET", path))
        return statuses


class Campaign:
    def __init__(self, arguments):
        self.points = arguments.points
        self.faults = Faults()
        self.server = FaultyServer(arguments, self.faults)
        self.load = loads.Load(self.server)
        self.exercise = Exercise(self.server, self.load)

    def alive(self, kind, place):
        if self.server.process.poll() is None:
            return True
        text = self.server.text()
        if kind == "small" and self.server.process.returncode == -signal.SIGABRT and "out of memory" in text:
            return False
        sys.exit(f"{kind} {place}: the server ended with {self.server.process.returncode}:\n{text[-3000:]}")

    def await_end(self):
        """It may be ending, which takes a moment."""
        try:
            self.server.process.wait(5)
        except subprocess.TimeoutExpired:
            pass

    def recover(self, kind, place):
        """Without faults, everything works again."""
        deadline = time.monotonic() + RECOVERY_S
        while True:
            statuses = self.exercise.run()
            if all(status == 200 for status in statuses):
                return
            if time.monotonic() > deadline:
                sys.exit(f"{kind} {place}: still {statuses} without faults:\n{self.server.text()[-3000:]}")
            time.sleep(0.1)

    def restart(self, when):
        if self.server.process.poll() is None:
            self.server.end(signal.SIGKILL)
        self.exercise.close()
        self.server.start()
        self.load.check(when)

    def running(self, kind):
        self.recover(kind, "before")
        before = self.faults.seen(kind)
        for _ in range(2):
            self.exercise.run()
        total = max((self.faults.seen(kind) - before) // 2, 1)
        refused = ended = fired = 0
        for i, place in enumerate(spread(total, self.points)):
            error = ERRORS[kind][i % len(ERRORS[kind])]
            # Some faults go away at once; others stay for a while.
            self.faults.arm(kind, place, 1 if kind == "large" or i % 3 else 5, error)
            before = self.faults.failed(kind)
            statuses = self.exercise.run()
            self.faults.disarm()
            fired += self.faults.failed(kind) > before
            if kind == "small" and None in statuses:
                self.await_end()
            if not self.alive(kind, place):
                ended += 1
                self.restart(f"{kind} {place}")
                continue
            wrong = [status for status in statuses if status is None]
            if wrong and kind not in ("socket", "small"):
                sys.exit(f"{kind} {place}: a connection ended without an answer: {statuses}\n"
                         + self.server.text()[-2000:])
            bad = [status for status in statuses if status and status != 200]
            if kind == "large" and len(bad) > 1:
                sys.exit(f"large {place}: one failed allocation, but {statuses}\n" + self.server.text()[-2000:])
            refused += len(bad) + len(wrong)
            self.recover(kind, place)
        if not fired:
            sys.exit(f"{kind}: none of the faults at {total} places happened.")
        self.restart(f"{kind}, after kill -9")
        check_store(self.server)
        print(f"running   {kind:7} {total:6} places, {fired:4} faults: {refused} requests refused, "
              f"{ended} orderly ends", flush=True)

    def starting(self, kind):
        before = self.faults.seen(kind)
        self.server.end(signal.SIGTERM)
        self.server.start()
        total = self.faults.seen(kind) - before
        started = explained = 0
        for i, place in enumerate(spread(total, self.points)):
            self.server.end(signal.SIGKILL)
            self.faults.arm(kind, place, 1 if i % 3 else 5, ERRORS[kind][i % len(ERRORS[kind])])
            self.server.start(wait=False)
            deadline = time.monotonic() + 300
            while self.server.process.poll() is None and "serving on" not in self.server.text():
                if time.monotonic() > deadline:
                    sys.exit(f"start, {kind} {place}: it neither starts nor ends.")
                time.sleep(0.01)
            self.faults.disarm()
            if self.server.process.poll() is None:
                started += 1
                self.server.port = int(re.search(r"serving on http://127.0.0.1:(\d+)", self.server.text())[1])
            else:
                self.alive_start(kind, place)
                explained += 1
                self.server.start()
        self.restart(f"start, {kind}")
        check_store(self.server)
        print(f"starting  {kind:7} {total:6} places: {started} starts, {explained} messages", flush=True)

    def alive_start(self, kind, place):
        status, text = self.server.process.returncode, self.server.text()
        orderly = status > 0 or status == -signal.SIGABRT and "out of memory" in text
        if not orderly or "assay" not in text:
            sys.exit(f"start, {kind} {place}: it ended with {status}:\n{text[-3000:]}")


def check_store(server):
    server.end(signal.SIGTERM)
    loads.check_store(server.arguments.data)
    server.start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("points", type=int)
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--data", default="data")
    parser.add_argument("--running", action="store_true", help="no faults while it starts")
    arguments = parser.parse_args()
    with open("load.yaml", "w") as config:
        config.write("retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n")
    campaign = Campaign(arguments)
    campaign.server.start()
    try:
        for kind in arguments.kinds:
            campaign.running(kind)
            if kind != "small" and not arguments.running:
                campaign.starting(kind)
    finally:
        campaign.faults.disarm()
        if campaign.server.process.poll() is None:
            campaign.server.process.kill()
            campaign.server.process.wait()


main()
