#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of Parca's agent under kill -9: load_arrow.py DATA ROUNDS FIXTURES ($ASSAY is the program)

A request is one of tests/fixtures/parca/, by turns WriteArrow and Write, whose one function is called
by the request's number. What was acknowledged is there once, also when it is sent again; what wasn't
is there whole, in all three of its services, or not at all."""

import argparse, os, random, signal, sys, threading, time

import h2
from grpc import OK, framed, total
from load import Server, check_store
from protobuf import field

SERVICE = "/parca.profilestore.v1alpha1.ProfileStoreService/"
PERIOD = 52631578
ROWS = {"app": 4, "script": 1, "batch": 1}  # of a request, in its services


class Requests:
    def __init__(self, fixtures):
        def load(name):
            with open(f"{fixtures}/parca/{name}.arrow", "rb") as file:
                return file.read()
        self.whole, self.samples, self.stacks = load("v2"), load("v1"), load("v1-stacks")
        if self.whole.count(b"handle") != 1 or self.stacks.count(b"handle") != 1:
            sys.exit("The fixtures have another function.")
        self.lock = threading.Lock()
        self.acknowledged, self.unsure, self.next = set(), set(), 0

    def take(self):
        with self.lock:
            self.next += 1
            return self.next

    def send(self, connection, number):
        """Whether it was acknowledged. The second stream names nothing of the first but ids, so its
        samples need a mark of their own: the bytes of a label that nobody looks at."""
        name = b"r%05d" % number
        if number % 2:
            return connection.call(SERVICE + "WriteArrow", field(1, self.whole.replace(b"handle", name))).grpc
        stream = connection.open("POST", SERVICE + "Write", [("content-type", "application/grpc")])
        answer = connection.answers[stream]
        connection.data(stream, framed(field(1, self.samples.replace(b"host-1", name))), ended=False)
        connection.until(lambda: answer.ended or answer.body, "the ids of stacks")
        if not answer.ended:
            connection.data(stream, framed(field(1, self.stacks.replace(b"handle", name))))
        return connection.wait(stream).grpc

    def run(self, address):
        """Until the server has gone."""
        number = None
        try:
            connection = h2.Connection(address)
            while True:
                number = self.take()
                with self.lock:
                    self.unsure.add(number)
                if self.send(connection, number) == OK:
                    self.settle(number)
        except (OSError, h2.Closed):
            pass

    def settle(self, number):
        with self.lock:
            self.unsure.discard(number)
            self.acknowledged.add(number)

    def check(self, address, when):
        counts = {service: 0 for service in ROWS}
        there = set()
        for service in ROWS:
            for line in stacks_of(address, service):
                stack, value = line.rsplit(" ", 1)
                counts[service] += int(value)
                if service != "script":
                    continue
                name = stack.split(";")[1]
                if int(value) != PERIOD or int(name[1:]) in there:
                    sys.exit(f"{when}: {line} is there more than once.")
                there.add(int(name[1:]))
        if not self.acknowledged <= there <= self.acknowledged | self.unsure:
            sys.exit(f"{when}: missing {sorted(self.acknowledged - there)[:10]}, "
                     f"not sent {sorted(there - self.acknowledged - self.unsure)[:10]}")
        for service, rows in ROWS.items():
            if counts[service] != rows * PERIOD * len(there):
                sys.exit(f"{when}: {service} has {counts[service] / PERIOD} rows for {len(there)} requests.")
        print(f"{when}: {len(self.acknowledged)} acknowledged requests are there once, "
              f"{len(there - self.acknowledged)} of {len(self.unsure)} others are there whole.", flush=True)


def stacks_of(address, service):
    try:
        return [line for line in total(address, service) if line]
    except SystemExit as failure:
        if "404" in str(failure):  # nothing of it yet
            return []
        raise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("rounds", type=int)
    parser.add_argument("fixtures")
    arguments = parser.parse_args()
    chance = random.Random(os.environ.get("LOAD_SEED"))
    with open("load.yaml", "w") as config:
        config.write("retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n")
    server, requests = Server(arguments), Requests(arguments.fixtures)
    try:
        for i in range(arguments.rounds):
            server.start()
            address = f"127.0.0.1:{server.port}"
            requests.check(address, f"After {i} kills")
            senders = [threading.Thread(target=requests.run, args=(address,)) for _ in range(4)]
            for sender in senders:
                sender.start()
            wanted = len(requests.acknowledged) + chance.randrange(1, 40)
            until = time.monotonic() + h2.PATIENCE
            while len(requests.acknowledged) < wanted and time.monotonic() < until:
                time.sleep(0.005)
            server.end(signal.SIGKILL)
            for sender in senders:
                sender.join()
            if len(requests.acknowledged) < wanted:
                sys.exit("The server acknowledges nothing:\n" + server.text())
        server.start()
        address = f"127.0.0.1:{server.port}"
        requests.check(address, f"After {arguments.rounds} kills")
        # All of it once more: what is there stays once, the rest comes.
        connection = h2.Connection(address)
        for number in sorted(requests.acknowledged | requests.unsure):
            while requests.send(connection, number) != OK:
                time.sleep(0.1)
            requests.settle(number)
        requests.check(address, "Sent again")
        if server.end(signal.SIGTERM):
            sys.exit("The server ended with an error:\n" + server.text())
        check_store(arguments.data)
    finally:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
