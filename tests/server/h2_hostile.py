# SPDX-License-Identifier: Apache-2.0
"""h2_hostile.py ADDRESS PID SANITIZED: misbehaves towards a server in every way, and checks that it
goes on serving within its memory."""

import http.client
import os
import socket
import struct
import sys
import time

import h2
from grpc import EXPORT, expect, framed, otlp, plain
from protobuf import field

ADDRESS, PID, SANITIZED = sys.argv[1], sys.argv[2], sys.argv[3] != "0"
MEMORY_KIB = 192 << 10  # of the process; its limit for work is 64 MiB
CPU_SECONDS = 3  # of the process, for what one of these peers sends; a tenth of it is usual


def cpu_seconds():
    return time.clock_gettime_ns(~int(PID) << 3 | 2) / 1e9  # the CPU clock of the process


used = cpu_seconds()


def serves(after):
    """After each case, which begins where the one before has ended."""
    global used
    before, used = used, cpu_seconds()
    print(f"{after}: {used - before:.2f} s of CPU", flush=True)
    if used - before > CPU_SECONDS and not SANITIZED:
        sys.exit(f"The server has spent {used - before:.2f} s on {after}.")
    expect(plain(ADDRESS, "GET", "/ready"), (200, b"ready\n"), f"HTTP/1.1 after {after}")
    connection = h2.Connection(ADDRESS)
    expect(connection.call(EXPORT, otlp("good", 1)).grpc, 0, f"gRPC after {after}")
    connection.close()
    with open(f"/proc/{PID}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    if peak > MEMORY_KIB and not SANITIZED:
        sys.exit(f"After {after} the server has taken {peak} KiB.")


def metric(name):
    _, text = plain(ADDRESS, "GET", "/metrics")
    for line in text.decode().split("\n"):
        if line.startswith(name + " "):
            return float(line.split()[1])
    return 0


def until(condition, what):
    deadline = time.monotonic() + h2.PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"Timed out: {what}")
        time.sleep(0.05)


def ended(connection):
    """Reads to the connection's end; the reason the server gave, or None."""
    try:
        while True:
            connection.step()
    except h2.Closed:
        return connection.goaway


def half_close(sock):
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:  # the server was quicker
        pass


def flood(name, frames, count=20000, wanted=(h2.ENHANCE_YOUR_CALM,)):
    connection = h2.Connection(ADDRESS)
    try:
        for i in range(count):
            connection.send(frames(connection, i))
    except h2.Closed:
        pass
    reason = ended(connection)
    if reason is not None and reason not in wanted:
        sys.exit(f"{name}: the server said goodbye with {reason}")
    connection.close()
    serves(name)


def reset(connection, i):
    stream = 1 + 2 * i
    return (h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, connection.head("GET", "/api/v1/types")) +
            h2.frame(h2.RST_STREAM, stream=stream, payload=struct.pack(">I", h2.CANCEL)))


def continuation(connection, i):
    if not i:
        return h2.frame(h2.HEADERS, 0, 1, connection.head("GET", "/ready"))
    return h2.frame(h2.CONTINUATION, 0, 1, h2.encode([("a" * 10, "b" * 10)]))


flood("rapid resets", reset)
flood("CONTINUATION frames", continuation)
flood("empty CONTINUATION frames", lambda c, i: h2.frame(h2.CONTINUATION if i else h2.HEADERS, 0, 1, b""))
flood("SETTINGS", lambda c, i: h2.frame(h2.SETTINGS, payload=struct.pack(">HI", 4, 65535)))
flood("pings", lambda c, i: h2.frame(h2.PING, payload=b"\0" * 8))
flood("PRIORITY frames", lambda c, i: h2.frame(h2.PRIORITY, stream=1 + 2 * i, payload=b"\0\0\0\0\1"))
flood("window updates", lambda c, i: h2.frame(h2.WINDOW_UPDATE, payload=struct.pack(">I", 1)),
      wanted=(h2.ENHANCE_YOUR_CALM, h2.FLOW_CONTROL_ERROR))
flood("unknown frames", lambda c, i: h2.frame(200, payload=b"x"))


def empty_data(connection, i):
    if not i:
        return h2.frame(h2.HEADERS, h2.END_HEADERS, 1, connection.head("POST", "/api/v1/push?service=a"))
    return h2.frame(h2.DATA, 0, 1)


flood("empty data", empty_data)

# Nonsense in place of frames.
for nonsense in (b"\xff" * 100, h2.frame(h2.SETTINGS, payload=b"\0" * 5), h2.frame(h2.DATA, 0, 0, b"x"),
                 h2.frame(h2.HEADERS, h2.END_HEADERS, 2, b"\x82"), h2.frame(h2.PUSH_PROMISE, 4, 1, b"\0" * 8),
                 b"\xff\xff\xff" + bytes(6) + b"\0" * 100, h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"\xff" * 50)):
    connection = h2.Connection(ADDRESS)
    try:
        connection.send(nonsense)
        connection.send(h2.frame(h2.PING, payload=b"\0" * 8) * 3)
    except h2.Closed:
        pass
    half_close(connection.socket)
    ended(connection)
    connection.close()
raw = socket.create_connection(ADDRESS.split(":"), timeout=h2.PATIENCE)
raw.sendall(h2.PREFACE[:-2] + b"xx" + b"nonsense\r\n\r\n")
half_close(raw)
try:
    while raw.recv(4096):
        pass
except ConnectionResetError:
    pass
raw.close()
serves("nonsense")
until(lambda: metric('assay_http_refused_total{reason="malformed"}') >= 7, "each kind of nonsense counts")

# A bomb of headers: one large entry of the table, and references to it.
connection = h2.Connection(ADDRESS)
head = connection.head("GET", "/ready") + b"\x40" + h2.text("bomb") + h2.text("x" * 3900) + b"\xbe" * 15000
for at in range(0, len(head), 16000):
    first, last = at == 0, at + 16000 >= len(head)
    connection.send(h2.frame(h2.HEADERS if first else h2.CONTINUATION,
                             (h2.END_STREAM if first else 0) | (h2.END_HEADERS if last else 0), 1, head[at:at + 16000]))
connection.answers[1] = h2.Answer()
expect(connection.wait(1).status, 400, "a bomb of headers")
connection.close()
serves("a bomb of headers")
# A head that is too large as it is sent.
flood("large heads", lambda c, i: h2.frame(h2.HEADERS if not i else h2.CONTINUATION, 0, 1, b"\0" * 16000))

# 10,000 streams: some are served, the rest refused, or the connection ends.
connection = h2.Connection(ADDRESS)
try:
    for i in range(10000):
        connection.open("POST", EXPORT, [("content-type", "application/grpc")])
    connection.until(lambda: sum(a.reset is not None for a in connection.answers.values()) >= 5000, "refusals")
except h2.Closed:
    pass
expect(metric("assay_http2_streams") <= 250, True, "the number of streams")
expect(metric('assay_http_refused_total{reason="overload"}') > 0 or connection.goaway is not None, True, "refusals count")
connection.close()
serves("10,000 streams")

# Streams that stall while their bodies come are answered for, all others served meanwhile.
stalled = h2.Connection(ADDRESS)
streams = [stalled.open("POST", EXPORT, [("content-type", "application/grpc")]) for _ in range(90)]
for stream in streams:
    stalled.data(stream, b"\0\0\0\x10\0abc", ended=False)
serves("stalled streams")
for stream in streams:
    expect(stalled.wait(stream).grpc, 4, "a stalled stream")
stalled.close()

# The same in a stream of messages, at each of its turns.
stalled = h2.Connection(ADDRESS)
with open(f"{os.environ['FIXTURES']}/parca/v1.arrow", "rb") as file:
    samples = field(1, file.read())
path = "/parca.profilestore.v1alpha1.ProfileStoreService/Write"
streams = [stalled.open("POST", path, [("content-type", "application/grpc")]) for _ in range(90)]
for stream in streams[:30]:
    stalled.data(stream, framed(samples), ended=False)
for stream in streams[:30]:
    stalled.until(lambda: stalled.answers[stream].body, "the ids of stacks")
# More of them wait for their clients than may read bodies at once.
serves("streams without their stacks")
expect(h2.Connection(ADDRESS).call(EXPORT, otlp("good", 1) + field(15, b"\0" * 300000)).grpc, 0, "a large body")
for stream in streams[30:60]:
    stalled.data(stream, framed(samples)[:-100], ended=False)
serves("streams that stall")
for stream in streams:
    expect(stalled.wait(stream).grpc, 4, "a stalled stream of messages")
stalled.close()

# Windows of one byte: the answer goes out byte by byte, and the connection ends before much of it.
tiny = h2.Connection(ADDRESS, window=1)
tiny.reading = False
stream = tiny.open("GET", "/metrics", ended=True)
try:
    for _ in range(20000):
        tiny.send(h2.frame(h2.WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", 1)))
except h2.Closed:
    pass
ended(tiny)
tiny.close()
serves("tiny windows")

# Answers that nobody reads: memory is bounded by what is at once.
deaf = [h2.Connection(ADDRESS, window=0) for _ in range(20)]
for connection in deaf:
    for _ in range(50):
        connection.open("GET", "/api/v1/openapi.json", ended=True)
serves("answers that nobody reads")
for connection in deaf:
    connection.close()

# Not hostile: gRPC's client in Go names its own last stream when it says goodbye.
malformed = 'assay_http_refused_total{reason="malformed"}'
before = metric(malformed)
connection = h2.Connection(ADDRESS)
connection.call(EXPORT, otlp("good", 1))
connection.send(h2.frame(h2.GOAWAY, payload=struct.pack(">II", 1, 0) + b"client transport shutdown"))
ended(connection)
connection.close()
expect(metric(malformed), before, "connections that ended with a goodbye")
serves("a goodbye")

# Half closed: whoever has closed its sending side has gone, and that counts if it had no answer.
half_closed = 'assay_http_refused_total{reason="half_closed"}'
until(lambda: metric("assay_http2_streams") == 0, "the end of all streams")
before = metric(half_closed)
connection = h2.Connection(ADDRESS)
connection.call(EXPORT, otlp("good", 1))
stream = connection.open("POST", "/grpc.health.v1.Health/Watch", [("content-type", "application/grpc")])
connection.data(stream, framed(b""))
connection.until(lambda: connection.answers[stream].body, "the first status")
half_close(connection.socket)
ended(connection)
connection.close()
until(lambda: metric("assay_http2_streams") == 0, "the end of all streams")
expect(metric(half_closed), before, "connections that were half closed before, or after an answer")
for i in range(50):
    connection = h2.Connection(ADDRESS)
    connection.open("POST", EXPORT, [("content-type", "application/grpc")])
    half_close(connection.socket)
    ended(connection)
    connection.close()
until(lambda: metric("assay_http2_streams") == 0, "the end of all streams")
expect(metric(half_closed), before + 50, "connections that were half closed")
serves("half-closed connections")

# Connections that say nothing, or not enough, end by themselves.
silent = [h2.Connection(ADDRESS, preface=False) for _ in range(20)]
partly = [h2.Connection(ADDRESS, preface=False) for _ in range(20)]
idle = [h2.Connection(ADDRESS) for _ in range(20)]
for connection in partly:
    connection.send(h2.PREFACE[:10])
for connection in silent + partly + idle:
    ended(connection)
    connection.close()
until(lambda: metric("assay_http2_connections") == 0, "the end of all connections")
serves("everything")
