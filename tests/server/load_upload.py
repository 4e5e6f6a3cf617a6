#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uploads of debug information under kill -9: load_upload.py DATA ROUNDS BINARY BUILD-ID ($ASSAY is
the program)

Each upload is a stream of messages with the binary under another build ID. An acknowledged one is
there whole; of the others, each is there whole or not at all."""

import argparse, http.client, os, random, signal, sys, threading, time

import h2
from grpc import OK, framed
from load import Server
from protobuf import field

UPLOAD = "/parca.debuginfo.v1alpha1.DebuginfoService/Upload"
PIECE = 4096


class Uploads:
    def __init__(self, binary, build_id):
        with open(binary, "rb") as file:
            self.data = file.read()
        self.old = bytes.fromhex(build_id)
        if self.data.count(self.old) != 1:
            sys.exit(f"The build ID is not in {binary} once.")
        self.lock = threading.Lock()
        self.acknowledged, self.unsure, self.next = set(), set(), 0

    def build_id(self, number):
        return number.to_bytes(len(self.old), "big")

    def content(self, number):
        return self.data.replace(self.old, self.build_id(number))

    def run(self, address):
        """Until the server has gone."""
        try:
            connection = h2.Connection(address)
            while True:
                with self.lock:
                    self.next += 1
                    number = self.next
                    self.unsure.add(number)
                if self.send(connection, number) == OK:
                    with self.lock:
                        self.unsure.discard(number)
                        self.acknowledged.add(number)
        except (OSError, h2.Closed):
            pass

    def send(self, connection, number):
        data = self.content(number)
        stream = connection.open("POST", UPLOAD, [("content-type", "application/grpc")])
        connection.data(stream, framed(field(1, field(1, self.build_id(number).hex()))), ended=False)
        for at in range(0, len(data), PIECE):
            connection.data(stream, framed(field(2, data[at:at + PIECE])), ended=False)
        connection.data(stream, b"")
        return connection.wait(stream).grpc

    def check(self, port, when):
        there = 0
        for number in sorted(self.acknowledged | self.unsure):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", f"/buildid/{self.build_id(number).hex()}/executable")
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            there += answer.status == 200
            if answer.status == 404 and number not in self.acknowledged:
                continue
            if answer.status != 200 or body != self.content(number):
                sys.exit(f"{when}: upload {number} got {answer.status} with {len(body)} bytes.")
        print(f"{when}: {len(self.acknowledged)} acknowledged uploads are there, "
              f"{there - len(self.acknowledged)} of {len(self.unsure)} others are there whole.", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("rounds", type=int)
    parser.add_argument("binary")
    parser.add_argument("build_id")
    arguments = parser.parse_args()
    chance = random.Random(os.environ.get("LOAD_SEED"))
    with open("load.yaml", "w") as config:
        config.write("retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n")
    server, uploads = Server(arguments), Uploads(arguments.binary, arguments.build_id)
    try:
        for i in range(arguments.rounds):
            server.start()
            uploads.check(server.port, f"After {i} kills")
            senders = [threading.Thread(target=uploads.run, args=(f"127.0.0.1:{server.port}",)) for _ in range(4)]
            for sender in senders:
                sender.start()
            wanted = len(uploads.acknowledged) + chance.randrange(1, 20)
            until = time.monotonic() + h2.PATIENCE
            while len(uploads.acknowledged) < wanted and time.monotonic() < until:
                time.sleep(0.005)
            server.end(signal.SIGKILL)
            for sender in senders:
                sender.join()
            if len(uploads.acknowledged) < wanted:
                sys.exit("The server acknowledges nothing:\n" + server.text())
        server.start()
        uploads.check(server.port, f"After {arguments.rounds} kills")
        if server.end(signal.SIGTERM):
            sys.exit("The server ended with an error:\n" + server.text())
    finally:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
