#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that stall, lie and never leave, at a server that must go on answering others.

crowd.py URL COUNT SERVICE: COUNT idle connections beside everything else; SERVICE has a large answer.
Each kind of trouble is a line "ok - ..." or "not ok - ..."."""

import gzip, os, re, resource, socket, ssl, sys, time
from urllib.parse import urlsplit, quote

url, count, service = urlsplit(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tls = url.scheme == "https"
PUSH = "/api/v1/push?service=crowd&from=now-10s"
open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(open_files[1], count + 2000), open_files[1]))
failures = 0


def dial(shake=True, timeout=60):
    s = socket.create_connection((url.hostname, url.port), timeout=timeout)
    if tls and shake:
        context = ssl.create_default_context(cafile=os.environ["CA"])
        context.check_hostname = False
        s = context.wrap_socket(s)
    return s


def exchange(data, timeout=60):
    """Everything that comes back until the server closes or says nothing more for a while."""
    s = dial(timeout=timeout)
    got = b""
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except (TimeoutError, ConnectionError, ssl.SSLError):
        pass
    s.close()
    return got


def statuses(answer):
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d\d\d) ", answer)]


def healthy():
    for path in ["/ready", "/api/v1/health", "/metrics"]:
        s = dial()
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        got = b""
        while more := s.recv(65536):
            got += more
        s.close()
        if not got.startswith(b"HTTP/1.1 200"):
            return False
    body = b"main;crowd 1\n"
    for _ in range(100): # work for others may take the memory for a moment, which it says
        got = exchange(request("POST", PUSH, body, close=True))
        if statuses(got) != [503]:
            break
        time.sleep(0.2)
    return statuses(got) == [200]


def request(method, path, body=b"", headers=(), close=False, length=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body or length is not None:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def check(name, holds, detail=""):
    global failures
    good = holds and healthy()
    print(f"{'ok' if good else 'not ok'} - {name}", flush=True)
    if not good:
        failures += 1
        print(f"# {detail!r}"[:1000], flush=True)


def refused(name, data, wanted, may_close=False):
    """may_close: what is more than the server reads resets the connection, and with it the answer.
    Whoever is told to come again in a moment, since the one before still has the memory, does so."""
    for _ in range(60):
        got = exchange(data)
        codes = statuses(got)
        if codes != [503]:
            break
        time.sleep(0.5)
    # libmicrohttpd says some of its own refusals twice before it closes.
    check(name, (may_close and not got) or (len(set(codes)) == 1 and codes[0] in wanted), got[:300])


# ---- who never leaves ----
idle = []
try:
    for _ in range(count):
        idle.append(dial(shake=False))
except OSError as error:
    print(f"# only {len(idle)} connections: {error}", flush=True)
check(f"{count} idle connections", len(idle) == count, len(idle))
stalled = [dial() for _ in range(100)]
for i, s in enumerate(stalled):
    s.sendall(request("POST", PUSH, b"main;x 1\n", length=100000)[:None if i % 2 else 40])
check("a hundred senders that stall, in heads and in bodies", True)

# ---- who lies ----
check("a body that ends early",
      statuses(exchange(request("POST", PUSH, b"main;x 1\n", length=1000)[:-1], 2)) in ([], [400], [408]))
first = request("POST", PUSH, b"main;early 1\nGET /ready HTTP/1.1\r\n\r\n", length=13)
got = exchange(first, 5)
check("more than it said is another request", statuses(got)[:1] == [200], got[:300])
for chunks in [b"zz\r\nmain 1\r\n0\r\n\r\n", b"ffffffffffffffffffff\r\nx", b"-5\r\nabcde\r\n0\r\n\r\n",
               b"5\r\nmain;x 1\n\r\n0\r\n\r\n", b"5;" + b"a" * 100000 + b"\r\nmain \r\n0\r\n\r\n"]:
    got = exchange(request("POST", PUSH, headers=["Transfer-Encoding: chunked"]) + chunks, 3)
    # A line of a chunk that is too long for it is libmicrohttpd's own error.
    check(f"chunks {chunks[:12]}", all(400 <= c <= 500 for c in statuses(got)), got[:200])
refused("two lengths", request("POST", PUSH, b"main 1\n", ["Content-Length: 3"], True), [400])
refused("a length and chunks", request("POST", PUSH, b"0\r\n\r\nGET /ready HTTP/1.1\r\n\r\n",
                                       ["Transfer-Encoding: chunked"], True), [400])
refused("another coding", request("POST", PUSH, headers=["Transfer-Encoding: gzip, chunked"],
                                  close=True) + b"0\r\n\r\n", [400, 501])
refused("a hidden coding", request("POST", PUSH, b"main 1\n", ["Transfer-Encoding : chunked"], True), [400])
refused("a negative length", request("POST", PUSH, length=-1, close=True), [400])
refused("a huge length", request("POST", PUSH, length=10**18, close=True), [413])
refused("a length beyond numbers", request("POST", PUSH, length=10**30, close=True), [400, 413])
refused("a header on two lines", request("POST", PUSH, b"x", ["X-A: b\r\n Content-Length: 0"], True),
        [200, 400, 415])
refused("two hosts", request("GET", "/ready", headers=["Host: b"], close=True), [400])
refused("a bomb of headers", request("GET", "/ready", headers=[f"X-{i}: {'y' * 100}" for i in range(5000)]),
        [400, 413, 431], may_close=True)
refused("a header without end", b"GET /ready HTTP/1.1\r\nX: " + b"y" * 1000000, [400, 413, 431], may_close=True)
refused("a path without end", b"GET /" + b"y" * 1000000, [400, 413, 414, 431], may_close=True)
refused("no HTTP", b"\x16\x03\x01" + os.urandom(300) + b"\r\n\r\n", [400], may_close=True) if tls else None

# ---- what expands ----
bomb = gzip.compress(b"main;" + b"a" * (40 << 20) + b" 1\n", 6)
refused("a gzip bomb", request("POST", PUSH, bomb, close=True), [400, 413])
twice = gzip.compress(bomb)
refused("a gzip bomb in a coding", request("POST", PUSH, twice, ["Content-Encoding: gzip"], True), [400, 413])
many = b"".join(b"main;f%d 1\n" % i for i in range(310000))
refused("more samples than allowed", request("POST", PUSH, gzip.compress(many, 1), close=True), [413])
deep = b";".join(b"f%d" % i for i in range(300000)) + b" 1\n"
refused("a stack without end", request("POST", PUSH, gzip.compress(deep), close=True), [200, 400, 413])

# ---- old and hurried ways ----
got = exchange(b"GET /ready HTTP/1.0\r\n\r\n")
check("HTTP/1.0", statuses(got) == [200], got)
hurried = request("GET", "/ready") * 30 + request("POST", PUSH, b"main;p 1\n") * 10
got = exchange(hurried + request("GET", "/api/v1/types", close=True))
check("forty-one requests at once", statuses(got) == [200] * 41, statuses(got))
for method in ["TRACE", "CONNECT", "PATCH", "FOO"]:
    got = statuses(exchange(request(method, "/ready", close=True), 5))
    check(f"the method {method}", len(got) == 1 and 400 <= got[0] < 600, got)

# ---- who doesn't read ----
readers = []
query = quote('cpu{service="%s"}' % service)
for _ in range(8):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((url.hostname, url.port))
    if tls:
        context = ssl.create_default_context(cafile=os.environ["CA"])
        context.check_hostname = False
        s = context.wrap_socket(s)
    s.sendall(request("GET", f"/api/v1/profile?query={query}&from=1980-01-01&format=folded"))
    readers.append(s)
check("eight readers that stop reading a large answer", True)

for s in idle + stalled + readers:
    s.close()
check("everybody leaves at once", True)
sys.exit(failures > 0)
