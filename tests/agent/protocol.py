#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random conversations of an agent's spool and upload with a server that answers anything, against a
model: protocol.py FEED LIVES SEED.

In each life the sender puts batches, is answered at random (right, wrong, by a proxy, in pieces, with
nonsense, endlessly, elsewhere, or not at all), and is killed. Between lives, files of its spool are
damaged, exchanged and added. In the end, each batch that was acknowledged by the spool and not damaged or
refused by the server itself is with the server, exactly as it was put; the sender's own account adds up;
and nobody else got anything."""
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

WAIT_S = 300
FLOOD_BYTES = 8 << 20
SECRET = "a-token-that-stays-here"


class Model:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.bodies, self.refused, self.damaged = {}, set(), set()
        self.settled, self.trapped = False, []
        self.counts = {}

    def store(self, batch, body):
        with self.lock:
            if self.bodies.setdefault(batch, body) != body:
                self.bodies[batch] = None  # sent again as something else

    def roll(self):
        with self.lock:
            if self.settled:
                return random.Random(0), "ok"
            kind = self.chance.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            return random.Random(self.chance.random()), kind


def answer(status, *headers, body=b"", ours=True):
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    if ours:
        lines.append("X-Assay-Server: 1")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def in_pieces(connection, data, chance):
    while data:
        size = chance.choice([1, 7, 100])
        connection.sendall(data[:size])
        data = data[size:]
        time.sleep(0.001)


def flood(connection, start, piece):
    connection.sendall(start)
    for _ in range(FLOOD_BYTES // len(piece)):
        connection.sendall(piece)


# What an answer can be. Each has a weight and a function of connection, chance and the trap's port, which
# returns whether the connection goes on. Those whose names begin with "ok" have stored the batch before.
KINDS = {
    "ok": (40, lambda c, r, t: c.sendall(answer(200)) or True),
    "ok 204": (3, lambda c, r, t: c.sendall(b"HTTP/1.1 204 No Content\r\n\r\n") or True),
    "ok slow": (3, lambda c, r, t: in_pieces(c, answer(200, body=b"{}"), r) or True),
    "ok chunked": (3, lambda c, r, t: c.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n") or True),
    "ok continue": (3, lambda c, r, t: c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 5 + answer(200)) or True),
    "ok lost": (5, lambda c, r, t: False),
    "ok short": (3, lambda c, r, t: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}") or False),
    "ok twice": (3, lambda c, r, t: c.sendall(answer(200) + answer(500)) or False),
    "ok 413 later": (1, lambda c, r, t: c.sendall(answer(200)) or True),
    "status": (10, lambda c, r, t: c.sendall(answer(
        r.choice([401, 403, 404, 408, 413, 500, 501, 502, 503, 504, 599]), body=b"{\"code\":\"\\u0000\"}")) or True),
    "wait": (3, lambda c, r, t: c.sendall(answer(r.choice([429, 503]), "Retry-After: " + r.choice(
        ["0", "-1", "nonsense", "99999999999999999999x", "Thu, 01 Jan 1970 00:00:00 GMT", ""]))) or True),
    "proxy": (6, lambda c, r, t: c.sendall(answer(r.choice([400, 413, 422]), ours=False, body=b"<html>")) or True),
    "refused": (2, lambda c, r, t: c.sendall(answer(r.choice([400, 422]), body=b"no")) or True),
    "elsewhere": (3, lambda c, r, t: c.sendall(answer(
        r.choice([301, 302, 307, 308]), f"Location: http://127.0.0.1:{t}/v1development/profiles")) or True),
    "garbage": (4, lambda c, r, t: c.sendall(r.randbytes(r.choice([1, 100, 5000]))) or False),
    "head flood": (1, lambda c, r, t: flood(c, b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000) or False),
    "body flood": (1, lambda c, r, t: flood(
        c, b"HTTP/1.1 500 No\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 10000) or False),
    "version": (2, lambda c, r, t: c.sendall(r.choice([b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/1.1 0 \r\n\r\n",
                                                      b"HTTP/1.1 200\0 OK\r\n\r\n", b"\r\n\r\n"])) or False),
    "silence": (1, lambda c, r, t: time.sleep(1.5)),
}


class Server:
    def __init__(self, model):
        self.model = model
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.trap = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()
        threading.Thread(target=self.spring, daemon=True).start()
        self.port, self.trap_port = self.socket.getsockname()[1], self.trap.getsockname()[1]

    def spring(self):
        while True:
            connection, _ = self.trap.accept()
            connection.settimeout(5)
            try:
                self.model.trapped.append(connection.recv(65536))
            except OSError:
                pass
            connection.close()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            connection.settimeout(60)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            stream = connection.makefile("rb")
            while self.request(connection, stream):
                pass
        except (OSError, ValueError):
            pass
        linger = self.model.chance.random() < 0.5
        if linger:  # by a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def request(self, connection, stream):
        line, headers = stream.readline(), {}
        while (header := stream.readline()) not in (b"\r\n", b""):
            name, value = header.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        if not line:
            return False
        chance, kind = self.model.roll()
        if kind in ("garbage", "version") and chance.random() < 0.5:
            return KINDS[kind][1](connection, chance, self.trap_port)  # before the body was read
        length = int(headers["content-length"])
        body = stream.read(length)
        if len(body) < length:
            return False  # whoever sent it is dead
        assert line.startswith(b"POST /v1development/profiles "), line
        assert headers["authorization"] == f"Bearer {SECRET}", headers
        batch = headers["x-assay-batch-id"]
        if kind.startswith("ok"):
            self.model.store(batch, body)
        if kind == "refused":
            self.model.refused.add(batch)
        return KINDS[kind][1](connection, chance, self.trap_port)


# ---- the sender ----

def start(feed, port, count, log):
    return subprocess.Popen(
        [feed, "-k", "token", "-s", "300", f"http://127.0.0.1:{port}", "spool", str(count), "5"],
        stdin=subprocess.PIPE, stdout=open("feed.out", "a"), stderr=log)


def put():
    """Batches that the spool has acknowledged. The last line may be cut off."""
    return set(re.findall(r"^put (\S+)\n", open("feed.out").read(), re.M))


def damage(model):
    """Some files of the spool, while nobody has it open."""
    chance = model.chance
    files = [name for name in os.listdir("spool")
             if name.endswith(".batch") and os.path.isfile(f"spool/{name}")]
    for name in chance.sample(files, min(len(files), chance.choice([0, 0, 1, 2]))):
        path, batch = f"spool/{name}", name.removesuffix(".batch")
        data = bytearray(open(path, "rb").read())
        how = chance.choice(["flip", "cut", "longer", "empty", "other", "gone"])
        if how == "flip":
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif how == "cut":
            del data[chance.randrange(len(data)):]
        elif how == "longer":
            data += b"x"
        elif how == "other":  # the content of another batch
            data[:] = open(f"spool/{chance.choice(files)}", "rb").read()
        if how == "gone":
            os.unlink(path)
        else:
            open(path, "wb").write(b"" if how == "empty" else data)
        model.damaged.add(batch)
    if chance.random() < 0.3:
        name = chance.choice(["x.batch", "../spool/" + "y" * 200 + ".batch", "z.part", "zzzz", " .batch", "0-0.batch"])
        open("spool/" + name, "wb").write(chance.randbytes(50))
    if chance.random() < 0.1 and not os.path.exists("spool/dir.batch"):
        os.mkdir("spool/dir.batch")


def resident_kib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


def check(model, log):
    acknowledged = put()
    stored = {batch for batch in model.bodies}
    lost = acknowledged - stored - model.refused - model.damaged
    if lost:
        sys.exit(f"{len(lost)} batches were lost: {sorted(lost)[:5]}\n{open(log).read()[-3000:]}")
    for batch, body in model.bodies.items():
        if body is None:
            sys.exit(f"{batch} was sent with two contents.")
    os.mkdir("stored")
    for batch, body in model.bodies.items():
        if not re.fullmatch("[0-9a-f]{16}-[0-9a-f]+", batch):
            sys.exit(f"The id {batch!r} is not one that was put.")
        open(f"stored/{batch}.zst", "wb").write(body)
    subprocess.run(["zstd", "-qdr", "--rm", "stored"], check=True)
    for batch in model.bodies:
        if open(f"stored/{batch}", "rb").read().split(b"\n", 1)[0].decode() != batch:
            sys.exit(f"{batch} arrived with another's content.")
    if model.trapped:
        sys.exit(f"Batches went elsewhere: {model.trapped[0][:300]}")
    return len(acknowledged), len(stored)


def main():
    feed, lives, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    model = Model(seed)
    server = Server(model)
    open("token", "w").write(SECRET)
    os.makedirs("spool", exist_ok=True)
    memory = 0
    with open("feed.err", "a") as log:
        for _ in range(lives):
            process = start(feed, server.port, 100000, log)
            time.sleep(model.chance.uniform(0.2, 1.5))
            assert process.poll() is None, open("feed.err").read()
            memory = max(memory, resident_kib(process.pid))
            process.kill()
            process.wait()
            damage(model)
        model.settled = True
        process = start(feed, server.port, 0, log)
        deadline = time.monotonic() + WAIT_S
        while any(re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]+\.batch", name) and os.path.isfile(f"spool/{name}")
                  for name in os.listdir("spool")):
            if time.monotonic() > deadline or process.poll() is not None:
                sys.exit(f"Left in the spool: {os.listdir('spool')}\n{open('feed.err').read()[-3000:]}")
            time.sleep(0.1)
        process.communicate(b"")
        assert process.returncode == 0, open("feed.err").read()
    figures = json.loads(open("feed.out").read().splitlines()[-1])
    ends = sum(figures[key] for key in ("sent", "refused", "damaged", "dropped", "batches"))
    if figures["put"] + figures["left"] != ends:
        sys.exit(f"The account doesn't add up: {figures}")
    acknowledged, stored = check(model, "feed.err")
    if memory > 64 << 10:
        sys.exit(f"The sender took {memory} KiB.")
    print(f"{lives} lives (seed {seed}): {acknowledged} batches acknowledged, {stored} stored, "
          f"{len(model.refused)} refused, {len(model.damaged)} damaged; at most {memory} KiB; "
          f"answers {dict(sorted(model.counts.items()))}")


main()
