#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random sessions with an HTTP server, against a model: sessions.py URL COUNT SEED.

A session is one connection with pipelined requests, sent in pieces of any size: pushes with a length
or in chunks, reads, refused requests, and at times one whose framing is broken. Answers come in
order, with the expected status; what follows broken framing has no effect; and in the end the
server has exactly what it acknowledged."""

import random
import socket
import sys
import urllib.parse
import urllib.request

WAIT_S = 60


class Request:
    def __init__(self, data, statuses, function=None, breaks=False):
        self.data, self.statuses, self.function, self.breaks = data, statuses, function, breaks


def head(line, *headers):
    return "\r\n".join([line, "Host: localhost", *headers, "", ""]).encode()


def chunked(chance, body):
    """The body in chunks of random size, with extensions and trailers as they may come."""
    out = b""
    while body:
        size = chance.randint(1, max(len(body), 1))
        digits = f"{size:x}"
        digits = digits.upper() if chance.random() < 0.3 else digits.zfill(chance.choice([0, 4]))
        extension = chance.choice(["", "", "", ";a=b", ';name="x y"'])
        out += f"{digits}{extension}\r\n".encode() + body[:size] + b"\r\n"
        body = body[size:]
    return out + b"0\r\n" + chance.choice([b"", b"", b"X-Trailer: 1\r\n"]) + b"\r\n"


def push(chance, number):
    function = f"f{number}"
    lines = [f"main;{function} {number % 9 + 1}"] + [f"main;rest{i} 0" for i in range(0)]
    body = ("\n".join(lines) + "\n").encode() + b"\n" * chance.choice([0, 0, 3, 5000])
    line = "POST /api/v1/push?service=s&from=now-60s HTTP/1.1"
    if chance.random() < 0.5:
        return Request(head(line, f"Content-Length: {len(body)}") + body, {200}, function)
    return Request(head(line, "Transfer-Encoding: chunked") + chunked(chance, body), {200}, function)


def harmless(chance, _):
    return chance.choice([
        Request(head("GET /ready HTTP/1.1"), {200}),
        Request(head("GET /api/v1/labels HTTP/1.1"), {200}),
        Request(head("GET /nothing/here HTTP/1.1"), {404}),
        Request(head("GET /api/v1/flame?query=%7B%7B HTTP/1.1"), {400}),
        Request(head("POST /api/v1/push?service=s HTTP/1.1", "Content-Length: 3") + b"\0\1\2", {400, 415, 422}),
        Request(head("POST /api/v1/push?nonsense=1 HTTP/1.1", "Content-Length: 0"), {400}),
    ])  # fmt: skip


def broken(chance, number):
    """Framing that has no single meaning: the rest of the connection can't be trusted."""
    line = "POST /api/v1/push?service=s&from=now-60s HTTP/1.1"
    body = f"main;broken{number} 1\n".encode()
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n"
    data = chance.choice([
        head(line, "Transfer-Encoding: chunked") + b"zz\r\n" + body + b"\r\n0\r\n\r\n",
        head(line, "Transfer-Encoding: chunked") + b"-1\r\n" + body,
        head(line, "Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n" + body,
        head(line, "Transfer-Encoding: chunked") + chunk[:-2] + b"XX0\r\n\r\n",
        head(line, "Transfer-Encoding: chunked", f"Content-Length: {len(body)}") + chunk + b"0\r\n\r\n",
        head(line, "Transfer-Encoding: gibberish") + body,
        head(line, "Content-Length: -5") + body,
        head(line, f"Content-Length: {len(body)}", "Content-Length: 1") + body,
        head(line, "Content-Length: 99999999999999999999999") + body,
        head("GET /ready HTTP/9.9"),
        b"nonsense\r\n\r\n",
        b"\0\0\0\0 nonsense\r\n" + head("GET /ready HTTP/1.1"),
        b"\n" + head("GET /ready HTTP/1.1"),
        head(line, "Transfer-Encoding: chunked") + chunk.replace(b"\r\n", b"\n", 1) + b"0\r\n\r\n",
        head(line, "Transfer-Encoding: chunked") + chunk[:-2] + b"\n0\r\n\r\n",
        head(line, "Transfer-Encoding: chunked") + chunk + b"0\r\nX: y\r\n z\r\n\r\n",
        head(line, "Transfer-Encoding: chunked") + chunk + b"0\n\n",
        head(line.replace("1.1", "1.0"), "Transfer-Encoding: chunked") + chunk + b"0\r\n\r\n",
        head("GET /ready HTTP/1.1", "Bad Header: x\0y"),
    ])  # fmt: skip
    return Request(data, set(range(400, 600)), breaks=True)


class Answers:
    """What comes back, one answer after the other; None at the end of the connection."""

    def __init__(self, connection):
        self.connection, self.data = connection, b""

    def more(self):
        try:
            piece = self.connection.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.data += piece
        return bool(piece)

    def until(self, mark):
        while mark not in self.data:
            if not self.more():
                return None
        text, self.data = self.data.split(mark, 1)
        return text

    def exactly(self, size):
        while len(self.data) < size:
            if not self.more():
                sys.exit("An answer is shorter than it says.")
        text, self.data = self.data[:size], self.data[size:]
        return text

    def next(self):
        text = self.until(b"\r\n\r\n")
        if text is None:
            if self.data:
                sys.exit(f"The connection ended within an answer: {self.data[:100]}")
            return None
        first, *rest = text.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in rest)}
        if headers.get("transfer-encoding") == "chunked":
            while size := int(self.until(b"\r\n"), 16):
                self.exactly(size + 2)
            self.exactly(2)
        else:
            self.exactly(int(headers.get("content-length", 0)))
        return int(first.split()[1])


def session(chance, address, numbers, acknowledged, ignored):
    requests = []
    for _ in range(chance.randint(1, 12)):
        make = chance.choices([push, harmless, broken], [6, 4, 1])[0]
        requests.append(make(chance, next(numbers)))
    data = b"".join(request.data for request in requests)
    connection = socket.create_connection(address, timeout=WAIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while data:
            size = chance.choice([1, 2, 7, 100, 1000, 100000])
            connection.sendall(data[:size])
            data = data[size:]
        connection.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError, OSError):
        pass  # it has ended the session after broken framing; the answers say
    answers, trusted = Answers(connection), True
    for request in requests:
        status = answers.next() if trusted else None
        if status is None and trusted and not request.breaks:
            sys.exit(f"No answer to {request.data[:200]}")
        if status and status not in request.statuses:
            sys.exit(f"{status} to {request.data[:300]}")
        if request.function:
            (acknowledged if status == 200 else ignored).append(request.function)
        trusted = trusted and not request.breaks
    connection.close()


def main():
    url, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parts = urllib.parse.urlsplit(url)
    chance, numbers = random.Random(seed), iter(range(10**9))
    acknowledged, ignored = [], []
    for _ in range(count):
        session(chance, (parts.hostname, parts.port), numbers, acknowledged, ignored)
    query = "/api/v1/profile?query=process_cpu:samples:count::&from=1980-01-01&to=now%2B1d&format=folded"
    with urllib.request.urlopen(url + query) as answer:
        stored = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())
    wanted = {f"main;{name}": str(int(name[1:]) % 9 + 1) for name in acknowledged}
    if stored != wanted:
        strange = {name: value for name, value in stored.items() if wanted.get(name) != value}
        missing = [name for name in wanted if name not in stored]
        sys.exit(f"Stored but not acknowledged so: {list(strange.items())[:5]}; missing: {missing[:5]}")
    print(f"{count} sessions (seed {seed}): {len(acknowledged)} pushes acknowledged and stored, "
          f"{len(ignored)} behind broken framing ignored")


main()
