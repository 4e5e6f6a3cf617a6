# SPDX-License-Identifier: Apache-2.0
"""grpc.py PART ADDRESS FIXTURES [ARGUMENTS]: calls a server over HTTP/2, and compares."""

import base64
import glob
import gzip
import http.client
import json
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.parse

import h2
from protobuf import field, varint

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
WRITE_RAW = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
PUSH = "/push.v1.PusherService/Push"
QUERIER = "/querier.v1.QuerierService/"
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = range(6)
PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 7, 8, 12, 13, 14, 16


def expect(got, wanted, what):
    if got != wanted:
        sys.exit(f"{what}: expected {wanted!r}, got {got!r}")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def plain(address, method, path, body=b"", **headers):
    connection = http.client.HTTPConnection(address, timeout=h2.PATIENCE)
    connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data


def otlp(service, value, start=None):
    """An export of one sample, in the layout of 1.10."""
    start = start or int(time.time()) * 10**9
    strings = ["", "cpu", "nanoseconds", "main", "work", "service.name", service]
    stack = field(1, varint(2) + varint(1))  # the innermost frame first
    dictionary = b"".join([
        field(1, b""), field(2, b""), field(2, field(3, field(1, 1))), field(2, field(3, field(1, 2))),
        field(3, b""), field(3, field(1, 3)),
        field(3, field(1, 4)), field(4, b""),
        b"".join(field(5, s) for s in strings), field(6, b""), field(7, b""), field(7, stack)])
    sample = field(1, 1) + field(4, varint(value)) + field(5, struct.pack("<Q", start))
    profile = (field(1, field(1, 1) + field(2, 2)) + field(2, sample) +
               varint(3 << 3 | 1) + struct.pack("<Q", start) + field(4, 10**10) +
               field(5, field(1, 1) + field(2, 2)) + field(6, 10**7))
    resource = field(1, field(1, field(1, "service.name") + field(2, field(1, service))))
    return field(1, resource + field(2, field(2, profile))) + field(2, dictionary)


def pprof(value, start=None):
    strings = ["", "cpu", "nanoseconds", "main", "work"]
    body = field(1, field(1, 1) + field(2, 2))
    body += field(2, field(1, varint(2) + varint(1)) + field(2, varint(value)))
    for i in (1, 2):
        body += field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, i + 2))
    body += b"".join(field(6, s) for s in strings)
    body += field(9, start or int(time.time()) * 10**9) + field(10, 10**10)
    return body + field(11, field(1, 1) + field(2, 2)) + field(12, 10**7)


def series(service, profile, parca):
    labels = [("__name__", "process_cpu"), ("service_name", service)]
    pairs = b"".join(field(1, field(1, n) + field(2, v)) for n, v in labels)
    one = (field(1, pairs) if parca else pairs) + field(2, field(1, profile))
    return field(2 if parca else 1, one)


def total(address, service, kind="process_cpu:cpu:nanoseconds:cpu:nanoseconds"):
    query = kind + '{service_name="%s"}' % service
    connection = http.client.HTTPConnection(address, timeout=h2.PATIENCE)
    from urllib.parse import quote
    connection.request("GET", f"/api/v1/profile?format=folded&query={quote(query)}&from=1980-01-01&to=now%2B1d")
    answer = connection.getresponse()
    text = answer.read().decode()
    expect(answer.status, 200, f"profile of {service}: {text}")
    return sorted(text.split("\n"))


def same(address, fixtures):
    """What is sent in different ways is stored the same."""
    connection = h2.Connection(address)
    now = int(time.time()) * 10**9
    message = otlp("otlp-http", 7000, now)
    expect(plain(address, "POST", "/v1development/profiles", message, Content_Type="application/x-protobuf")[0],
           200, "OTLP over HTTP/1.1")
    wanted = total(address, "otlp-http")
    if "main;work 7000" not in wanted:
        sys.exit(f"The profile is not as it was sent: {wanted}")
    zstd = subprocess.run(["zstd", "-qc"], input=otlp("otlp-zstd", 7000, now), stdout=subprocess.PIPE, check=True).stdout
    for service, sent, flags, headers in (
            ("otlp-plain", otlp("otlp-plain", 7000, now), 0, ()),
            ("otlp-gzip", gzip.compress(otlp("otlp-gzip", 7000, now)), 1, [("grpc-encoding", "gzip")]),
            ("otlp-zstd", zstd, 1, [("grpc-encoding", "zstd")])):
        answer = connection.call(EXPORT, sent, headers, flags)
        expect((answer.status, answer.grpc, answer.body), (200, OK, b"\0\0\0\0\0"), f"{service}: {answer.headers}")
        expect(answer.header("content-type"), "application/grpc", "the type")
        expect(total(address, service), wanted, service)
    for path, parca in ((PUSH, False), (WRITE_RAW, True)):
        name = "parca" if parca else "push"
        profile = pprof(9000, now)
        expect(plain(address, "POST", path, series(name + "-connect", profile, parca), Content_Type="application/proto")[0],
               200, path)
        answer = connection.call(path, series(name + "-grpc", profile, parca))
        expect(answer.grpc, OK, f"{path}: {answer.trailers or answer.headers}")
        web = b"\0" + struct.pack(">I", len(series(name + "-web", profile, parca))) + series(name + "-web", profile, parca)
        status, body = plain(address, "POST", path, web, Content_Type="application/grpc-web+proto")
        expect((status, body[:5], body[5], b"grpc-status: 0" in body), (200, b"\0\0\0\0\0", 0x80, True), f"{path} as gRPC-Web")
        status, body = plain(address, "POST", path, b"\0\0\0\0\1\xff", Content_Type="application/grpc-web+proto")
        expect((status, body[0], b"grpc-status: 3" in body), (200, 0x80, True), f"an error of {path} as gRPC-Web: {body!r}")
        wanted = total(address, name + "-connect")
        if "main;work 9000" not in wanted:
            sys.exit(f"{path}: the profile is not as it was sent: {wanted}")
        expect(total(address, name + "-grpc"), wanted, path)
        expect(total(address, name + "-web"), wanted, path)
    same_queries(connection, address)
    many_at_once(connection, address)
    slowly_at_once(connection, address)
    # A new connection, where the client has sent more than our window before it knows of it.
    fresh = h2.Connection(address)
    fresh.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    message = otlp("fresh", 77) + field(15, b"\0" * 200000)
    stream = fresh.open("POST", EXPORT, [("content-type", "application/grpc")])
    fresh.data(stream, b"\0" + struct.pack(">I", len(message)) + message)
    expect(fresh.wait(stream).grpc, OK, "a large body on a new connection")


def send_all(address, fixtures, way):
    """Every kind of push, one after the other, by one way. How each was answered, and what with."""
    connection = h2.Connection(address)
    parca = "/parca.profilestore.v1alpha1.ProfileStoreService/"
    otlp_files = sorted(glob.glob(f"{fixtures}/otlp/*.pb"))
    pushes = [(EXPORT, "/v1development/profiles", read(path)) for path in otlp_files]
    for name in ("cpu", "heap", "base", "new"):
        profile = read(f"{fixtures}/man/{name}.pb.gz")
        pushes.append((PUSH, PUSH, series(f"push-{name}", profile, False)))
        pushes.append((WRITE_RAW, WRITE_RAW, series(f"raw-{name}", profile, True)))
    for name in ("v2", "v2-lz4", "v2-zstd"):
        pushes.append((parca + "WriteArrow", parca + "WriteArrow", field(1, read(f"{fixtures}/parca/{name}.arrow"))))
    for at, (method, path, message) in enumerate(pushes):
        if way == "http":
            kind = "application/x-protobuf" if path.startswith("/v1") else "application/proto"
            status, _ = plain(address, "POST", path, message, Content_Type=kind)
            code = OK if status == 200 else INVALID_ARGUMENT if status in (400, 422) else status
        elif way == "grpc":
            packed = at % 2
            answer = connection.call(method, gzip.compress(message) if packed else message,
                                     [("grpc-encoding", "gzip")] if packed else [], packed)
            code = answer.grpc
        else:
            answer = connection.request("POST", method, [("content-type", "application/grpc-web+proto")], framed(message))
            code = int(answer.body.rpartition(b"grpc-status: ")[2].split(b"\r")[0])
        print(at, path, code)


def same_queries(connection, address):
    start, end = 0, int(time.time() * 1000) + 86400000
    kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    calls = {
        "ProfileTypes": field(1, start) + field(2, end),
        "LabelNames": field(2, start) + field(3, end),
        "LabelValues": field(1, "service_name") + field(3, start) + field(4, end),
        "Series": field(3, start) + field(4, end),
        "SelectMergeStacktraces": field(1, kind) + field(2, "{}") + field(3, start) + field(4, end),
        "SelectMergeProfile": field(1, kind) + field(2, "{}") + field(3, start) + field(4, end),
    }
    for method, request in calls.items():
        status, connect = plain(address, "POST", QUERIER + method, request, Content_Type="application/proto")
        expect(status, 200, method)
        if not connect:
            sys.exit(f"{method} has no answer")
        answer = connection.call(QUERIER + method, request)
        expect((answer.grpc, answer.message), (OK, connect), method)
        packed = connection.call(QUERIER + method, request, [("grpc-accept-encoding", "identity,gzip")])
        expect(gzip.decompress(packed.message) if packed.body[0] else packed.message, connect, method + " as gzip")
        framed = b"\0" + struct.pack(">I", len(request)) + request
        for over_h2 in (False, True):
            if over_h2:
                web = connection.request("POST", QUERIER + method, [("content-type", "application/grpc-web+proto")], framed).body
            else:
                _, web = plain(address, "POST", QUERIER + method, framed, Content_Type="application/grpc-web+proto")
            length = struct.unpack(">I", web[1:5])[0]
            expect(web[5:5 + length], connect, method + " as gRPC-Web")
            expect(web[5 + length], 0x80, method + " as gRPC-Web: trailers")
    answer = connection.call(QUERIER + "LabelNames", json.dumps({"start": start, "end": end}).encode(),
                             content_type="application/grpc+json")
    status, connect = plain(address, "POST", QUERIER + "LabelNames", json.dumps({"start": start, "end": end}).encode(),
                            Content_Type="application/json")
    expect((answer.grpc, answer.message), (OK, connect), "LabelNames as JSON")


def slowly_at_once(connection, address):
    """Handlers that begin before their bodies have come take memory by the lengths of the messages,
    so that there is enough for several of them."""
    streams, filler = [], field(15, b"\0" * 300000)
    for i in range(5):
        message = otlp(f"slow-{i}", 2000 + i) + filler
        stream = connection.open("POST", EXPORT, [("content-type", "application/grpc")])
        streams.append((stream, framed(message)))
        connection.data(stream, framed(message)[:280000], ended=False)
    for stream, body in streams:
        connection.data(stream, body[280000:])
    for i, (stream, _) in enumerate(streams):
        answer = connection.wait(stream)
        expect(answer.grpc, OK, f"stream {stream}: {answer.header('grpc-message')}")
        if f"main;work {2000 + i}" not in total(address, f"slow-{i}"):
            sys.exit(f"The profile of stream {stream} is not as it was sent.")


def many_at_once(connection, address):
    """Streams side by side, with bodies larger than a window."""
    streams, filler = [], field(15, b"\0" * 300000)
    for i in range(20):
        message = otlp(f"many-{i}", 1000 + i) + filler
        stream = connection.open("POST", EXPORT, [("content-type", "application/grpc")])
        streams.append((stream, b"\0" + struct.pack(">I", len(message)) + message))
    for stream, body in streams:
        connection.data(stream, body)
    for i, (stream, body) in enumerate(streams):
        answer = connection.wait(stream)
        while answer.grpc == UNAVAILABLE and answer.header("retry-after"):
            time.sleep(int(answer.header("retry-after")))  # together they may exceed the memory
            answer = connection.request("POST", EXPORT, [("content-type", "application/grpc")], body)
        expect(answer.grpc, OK, f"stream {stream}: {answer.header('grpc-message')}")
        if f"main;work {1000 + i}" not in total(address, f"many-{i}"):
            sys.exit(f"The profile of stream {stream} is not as it was sent.")


def status(address, fixtures):
    connection = h2.Connection(address)

    def code(wanted, path, message, **options):
        answer = connection.call(path, message, **options)
        expect(answer.grpc, wanted, f"{path}: {answer.header('grpc-message')}")
        if wanted != OK and not answer.header("grpc-message"):
            sys.exit(f"{path}: no message")
        return answer

    code(UNIMPLEMENTED, "/none.Service/Method", b"")
    code(UNIMPLEMENTED, "/api/v1/push", b"x")  # not a method of a service
    code(INVALID_ARGUMENT, EXPORT, b"\xff\xff\xff")
    code(UNIMPLEMENTED, EXPORT, b"x", flags=1, headers=[("grpc-encoding", "br")])
    code(INVALID_ARGUMENT, EXPORT, b"x", flags=1)
    code(INVALID_ARGUMENT, EXPORT, b"not gzip", flags=1, headers=[("grpc-encoding", "gzip")])
    code(INVALID_ARGUMENT, EXPORT, b"", flags=8)
    for path, parca in ((PUSH, False), (WRITE_RAW, True)):
        code(INVALID_ARGUMENT, path, series("nonsense", b"nonsense", parca))
    code(OK, EXPORT, b"")
    code(NOT_FOUND, QUERIER + "SelectMergeStacktraces", field(1, "nonsense"))
    code(RESOURCE_EXHAUSTED, QUERIER + "LabelNames", b"\0" * (2 << 20))
    for body in (b"", b"\0\0\0", b"\0\0\0\0\5abc", b"\0\0\0\0\0\0\0\0\0\0"):
        answer = connection.request("POST", EXPORT, [("content-type", "application/grpc")], body)
        expect(answer.grpc, INVALID_ARGUMENT, f"the body {body!r}")
    answer = connection.request("POST", EXPORT, [("content-type", "application/grpc-web-text")], b"AAAAAAA=")
    expect(answer.status, 415, "gRPC-Web as text")

    # A deadline that passes while the body is coming; the connection goes on.
    stream = connection.open("POST", EXPORT, [("content-type", "application/grpc"), ("grpc-timeout", "200m")])
    expect(connection.wait(stream).grpc, DEADLINE_EXCEEDED, "the deadline")
    # Cancelled, with and without a body.
    for ended in (False, True):
        stream = connection.open("POST", EXPORT, [("content-type", "application/grpc")], ended)
        connection.send(h2.frame(h2.RST_STREAM, stream=stream, payload=struct.pack(">I", h2.CANCEL)))
    code(OK, EXPORT, b"")
    expect(connection.request("GET", "/ready").body, b"ready\n", "after all that")
    expect(connection.goaway, None, "goodbye")
    # HTTP/1.1 has no trailers that gRPC could use.
    expect(plain(address, "POST", EXPORT, b"\0\0\0\0\0", Content_Type="application/grpc")[0], 415, "gRPC over HTTP/1.1")


def cancel(address, fixtures, pid):
    """A query stops when its client cancels it: it takes less CPU time than one that nobody cancels."""
    connection = h2.Connection(address)
    profile, now = pprof(1), int(time.time() * 1000)
    for part in range(10):
        request = b""
        for i in range(1000):
            labels = [("__name__", "process_cpu"), ("service_name", "slow"), ("a", "x" * 180 + f"{part}-{i}")]
            pairs = b"".join(field(1, field(1, n) + field(2, v)) for n, v in labels)
            request += field(1, pairs + field(2, field(1, profile)))
        deadline = time.monotonic() + 60
        while (status := connection.call(PUSH, request).grpc) == UNAVAILABLE:  # no memory just now
            assert time.monotonic() < deadline, "The server has no memory for a minute."
            time.sleep(0.2)
        expect(status, OK, "series for a slow query")

    def working():
        return b"\nassay_memory_budget_used_bytes 0\n" not in plain(address, "GET", "/metrics")[1]

    def until(condition, what):
        end = time.monotonic() + h2.PATIENCE
        while not condition():
            if time.monotonic() > end:
                sys.exit(f"Timed out: {what}")
            time.sleep(0.01)

    def spent(number, cancels, deadline=()):
        """CPU seconds of the server."""
        until(lambda: not working(), "the end of what was before")
        # Expressions that the server doesn't know yet.
        selector = "{" + ",".join(f'a!~".*x.*[yz]{number}-{i}"' for i in range(4)) + "}"
        message = field(1, "process_cpu:cpu:nanoseconds:cpu:nanoseconds") + field(2, selector) + field(4, now + 86400000)
        before = time.clock_gettime_ns(~int(pid) << 3 | 2)
        stream = connection.open("POST", QUERIER + "SelectMergeStacktraces", [("content-type", "application/grpc"), *deadline])
        connection.data(stream, framed(message))
        answer = connection.answers[stream]

        def begun():
            while select.select([connection.socket], [], [], 0)[0]:
                connection.step()
            return answer.ended or working()

        until(begun, "the begin of the query")
        if cancels and not answer.ended:
            connection.send(h2.frame(h2.RST_STREAM, stream=stream, payload=struct.pack(">I", h2.CANCEL)))
        until(lambda: not working(), "the end of the query")
        if deadline:
            expect(connection.wait(stream).grpc, DEADLINE_EXCEEDED, "a query that takes longer than its deadline")
        return (time.clock_gettime_ns(~int(pid) << 3 | 2) - before) / 1e9

    def spent_by_http(number):
        """The same of a client of HTTP/1.1 that closes its connection."""
        until(lambda: not working(), "the end of what was before")
        selector = "{" + ",".join(f'a!~".*x.*[yz]{number}-{i}"' for i in range(4)) + "}"
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 2 * 86400))
        query = urllib.parse.urlencode({"query": "cpu" + selector, "from": "1980-01-01", "to": day})
        host, port = address.rsplit(":", 1)
        before = time.clock_gettime_ns(~int(pid) << 3 | 2)
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"GET /api/v1/flame?{query} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
            until(lambda: select.select([client], [], [], 0)[0] or working(), "the begin of the query")
            if select.select([client], [], [], 0)[0]:
                status = client.recv(100).split()[1]
                expect(status, b"200", "a query that was over before its client had gone")
        until(lambda: not working(), "the end of the query")
        return (time.clock_gettime_ns(~int(pid) << 3 | 2) - before) / 1e9

    whole = spent(0, False)
    # On a busy machine the query may be over before it is cancelled.
    taken = [spent(number, True) for number in range(1, 11)]
    print(f"A query took {whole:.2f} s of CPU time, cancelled ones {' '.join(f'{t:.2f}' for t in sorted(taken))}.")
    if min(taken) > whole / 2:
        sys.exit("A cancelled query went on.")
    gone = [spent_by_http(number) for number in range(16, 26)]
    print(f"By HTTP/1.1 they took {' '.join(f'{t:.2f}' for t in sorted(gone))}, when their clients had gone.")
    if min(gone) > whole / 2:
        sys.exit("A query went on after its client had gone.")
    late = [spent(number, False, [("grpc-timeout", "5m")]) for number in range(11, 16)]
    print(f"With a deadline of 5 ms they took {' '.join(f'{t:.2f}' for t in sorted(late))}.")
    if min(late) > whole / 2:
        sys.exit("A query went on after its deadline.")


def tokens(address, fixtures, writer, reader):
    connection = h2.Connection(address)

    def code(wanted, path, message, token=None):
        headers = [("authorization", "Bearer " + token)] if token else []
        answer = connection.call(path, message, headers)
        expect(answer.grpc, wanted, f"{path}: {answer.header('grpc-message')}")

    request = field(2, 0) + field(3, int(time.time() * 1000) + 86400000)
    code(UNAUTHENTICATED, EXPORT, otlp("a", 1))
    code(UNAUTHENTICATED, EXPORT, otlp("a", 1), "assay_wrong")
    code(OK, EXPORT, otlp("a", 1), writer)
    code(PERMISSION_DENIED, EXPORT, otlp("a", 1), reader)
    code(OK, QUERIER + "LabelNames", request, reader)
    code(PERMISSION_DENIED, QUERIER + "LabelNames", request, writer)


def retry(address, fixtures):
    connection = h2.Connection(address)
    head = connection.head("POST", EXPORT, [("content-type", "application/grpc")])
    streams = range(1, 180, 2)  # all in one write, many times the rate
    for stream in streams:
        connection.answers[stream] = h2.Answer()
    connection.send(b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, s, head) +
                             h2.frame(h2.DATA, h2.END_STREAM, s, b"\0" * 5) for s in streams))
    answers = [connection.wait(stream) for stream in streams]
    answer = next((a for a in answers if a.grpc == RESOURCE_EXHAUSTED), answers[0])
    expect(answer.grpc, RESOURCE_EXHAUSTED, "too many calls")
    details = answer.header("grpc-status-details-bin")
    wait = int(answer.header("retry-after"))
    details = base64.b64decode(details + "=" * (-len(details) % 4))
    info = field(1, "type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, field(1, wait)))
    if wait < 1 or field(1, RESOURCE_EXHAUSTED) not in details or field(3, info) not in details:
        sys.exit(f"No RetryInfo of {wait} s: {details!r}")


def ready(address, fixtures):
    expect(plain(address, "GET", "/ready")[0], 200, "HTTP/1.1")
    expect(h2.Connection(address).call(EXPORT, b"").grpc, OK, "gRPC")


def tls(address, fixtures, authority):
    for protocols in (["h2"], ["http/1.1", "h2"]):
        connection = h2.Connection(address, h2.tls_context(authority, protocols))
        expect(connection.socket.selected_alpn_protocol(), "h2", "ALPN")
        message = otlp("tls", 5) + field(15, b"\0" * 300000)
        expect(connection.call(EXPORT, message).grpc, OK, "gRPC over TLS")
        expect(len(connection.request("GET", "/api/v1/openapi.json").body) > 50000, True, "a large answer")
        connection.close()
    for protocols in (["http/1.1"], []):
        context = h2.tls_context(authority, protocols or ["none"])
        if not protocols:
            context = ssl.create_default_context(cafile=authority)
        client = http.client.HTTPSConnection("localhost", int(address.rpartition(":")[2]), context=context, timeout=h2.PATIENCE)
        client.request("GET", "/ready")
        expect(client.getresponse().read(), b"ready\n", "HTTP/1.1 over TLS")
        client.close()
    # Handshakes that never end, and what is none: others are served meanwhile.
    host, _, port = address.rpartition(":")
    stuck = [socket.create_connection((host, int(port)), timeout=h2.PATIENCE) for _ in range(20)]
    for i, one in enumerate(stuck):
        one.sendall((b"\x16\x03\x01\x02\x00\x01", b"nonsense\r\n\r\n", b"\x16")[i % 3])
    connection = h2.Connection(address, h2.tls_context(authority))
    expect(connection.call(EXPORT, b"").grpc, OK, "beside handshakes that never end")


def mutual(address, fixtures, authority, certificate, key):
    connection = h2.Connection(address, h2.tls_context(authority))
    expect(connection.call(EXPORT, b"").grpc, UNAUTHENTICATED, "without a certificate")
    connection = h2.Connection(address, h2.tls_context(authority, certificate=certificate, key=key))
    expect(connection.call(EXPORT, b"").grpc, OK, "with a certificate")


def body(address, fixtures, service, value, output):
    """For others that send it."""
    open(output, "wb").write(otlp(service, int(value)))


def has(address, fixtures, service, value):
    if f"main;work {value}" not in total(address, service):
        sys.exit(f"{service}: {total(address, service)}")


def messages(body):
    while body:
        length = struct.unpack(">I", body[1:5])[0]
        yield body[5:5 + length]
        body = body[5 + length:]


def framed(message, flags=0):
    return bytes([flags]) + struct.pack(">I", len(message)) + message


def upload(connection, sent):
    """A call of Parca's upload of symbols."""
    stream = connection.open("POST", "/parca.debuginfo.v1alpha1.DebuginfoService/Upload",
                             [("content-type", "application/grpc"), ("grpc-encoding", "gzip")])
    connection.data(stream, b"".join(sent))
    return connection.wait(stream)


def upload_binary(connection, data, build_id):
    pieces = [data[i:i + 100000] for i in range(0, len(data), 100000)]
    answer = upload(connection, [framed(field(1, field(1, build_id) + field(2, "x")))] +
                    [framed(gzip.compress(field(2, piece), 1), 1) for piece in pieces])
    expect((answer.grpc, answer.message), (OK, field(1, build_id) + field(2, len(data))), "the upload")


def services(address, fixtures, binary, build_id):
    """Reflection, health, and Parca's upload of symbols."""
    connection = h2.Connection(address)
    headers = [("content-type", "application/grpc")]
    for version in ("v1", "v1alpha"):
        path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        # One after the other: each answer comes before the next request.
        stream = connection.open("POST", path, headers)
        answer = connection.answers[stream]
        for count, (request, wanted) in enumerate((
                (field(7, ""), b"querier.v1.QuerierService"),
                (field(4, "push.v1.PusherService"), b"pyroscope_types.proto"),
                (field(3, "health.proto"), b"HealthCheckRequest"),
                (field(4, "none.Such"), b"Unknown symbol"),
                (field(6, "push.v1.PushRequest"), b"push.v1.PushRequest"),
                (b"\xff", b"Unknown request")), 1):
            connection.data(stream, framed(request), ended=False)
            connection.until(lambda: answer.ended or len(list(messages(answer.body))) == count, "reflection")
            if wanted not in list(messages(answer.body))[-1]:
                sys.exit(f"Reflection of {request!r}: {answer.body!r}")
        connection.data(stream, b"")
        expect(connection.wait(stream).grpc, OK, "reflection")
        expect(connection.request("POST", path, headers).grpc, OK, "reflection without requests")
        big = connection.open("POST", path, headers)
        connection.data(big, framed(b"\0" * 5000))
        expect(connection.wait(big).grpc, RESOURCE_EXHAUSTED, "reflection with a large request")

    check = "/grpc.health.v1.Health/Check"
    for name in ("", "push.v1.PusherService"):
        answer = connection.call(check, field(1, name))
        expect((answer.grpc, answer.message), (OK, field(1, 1)), "health")
    expect(connection.call(check, field(1, "none")).grpc, NOT_FOUND, "health of an unknown service")
    expect(connection.call("/grpc.health.v1.Health/List", b"").grpc, UNIMPLEMENTED, "another method of health")

    parca, data = "/parca.debuginfo.v1alpha1.DebuginfoService/", open(binary, "rb").read()
    answer = connection.call(parca + "ShouldInitiateUpload", field(1, build_id))
    expect((answer.grpc, answer.message[:2]), (OK, field(1, 1)), "whether to upload")
    expect(connection.call(parca + "MarkUploadFinished", field(1, build_id)).grpc, NOT_FOUND, "before the upload")
    answer = connection.call(parca + "InitiateUpload", field(1, build_id) + field(2, len(data)) + field(5, 1))
    expect(answer.grpc, OK, "announcing an upload")
    if field(3, 1) not in answer.message:
        sys.exit("The upload is not by gRPC.")
    info = field(1, field(1, build_id) + field(2, "x"))
    expect(upload(connection, [framed(field(2, data))]).grpc, INVALID_ARGUMENT, "an upload without a build")
    expect(upload(connection, [framed(info)]).grpc, INVALID_ARGUMENT, "an upload without a file")
    expect(upload(connection, [framed(info), framed(field(2, b"not ELF" * 100))]).grpc, INVALID_ARGUMENT, "an upload of nonsense")
    upload_binary(connection, data, build_id)
    expect(connection.call(parca + "MarkUploadFinished", field(1, build_id)).grpc, OK, "after the upload")
    # Parca's agent has a hash of its own for a file in which it finds no build ID. The file is known
    # by either then; without that word, another build ID than the file's is an error.
    hashed = "00112233445566778899aabbccddeeff"
    answer = connection.call(parca + "InitiateUpload", field(1, hashed) + field(2, len(data)) + field(6, 2))
    expect((answer.grpc, field(2, "hash-" + hashed) in answer.message), (OK, True), "announcing a file by a hash")
    for upload_id, code in (("x", INVALID_ARGUMENT), ("hash-" + hashed, OK)):
        info = field(1, field(1, hashed) + field(2, upload_id))
        expect(upload(connection, [framed(info), framed(field(2, data))]).grpc, code, f"the upload {upload_id}")
    expect(connection.call(parca + "MarkUploadFinished", field(1, hashed)).grpc, OK, "after the upload by a hash")
    for known in (build_id, hashed):
        status, body = plain(address, "GET", f"/buildid/{known}/executable")
        expect((status, body == data), (200, True), f"the file as {known}")
    expect(plain(address, "GET", f"/api/v1/debuginfo/{build_id}")[0], 200, "the symbols")


def crowd(address, fixtures, binary, build_id):
    """Many uploads at once, as an agent sends them when it starts: they take little memory, pushes
    are taken meanwhile, and all of them end."""
    connection, data = h2.Connection(address), open(binary, "rb").read()
    path, headers = "/parca.debuginfo.v1alpha1.DebuginfoService/Upload", [("content-type", "application/grpc")]
    streams = [connection.open("POST", path, headers) for _ in range(24)]
    # A chunk of which the end is missing, in messages that have other fields, too.
    sent = framed(field(1, field(3, 1) + field(1, build_id)) + field(9, "unknown")) + framed(field(2, data))
    for stream in streams:
        connection.data(stream, sent[:-100], ended=False)
    for _ in range(5):
        expect(h2.Connection(address).call(EXPORT, otlp("beside", 1)).grpc, OK, "a push beside uploads")
    for stream in streams:
        connection.data(stream, sent[-100:])
    for stream in streams:
        answer = connection.wait(stream)
        expect((answer.grpc, answer.message), (OK, field(1, build_id) + field(2, len(data))), "one of many uploads")
    # The end of a body within a message, at each of its parts.
    for length in (3, 5, 8, len(sent) - len(data), len(sent) - 1):
        stream = connection.open("POST", path, headers)
        connection.data(stream, sent[:length])
        expect(connection.wait(stream).grpc, INVALID_ARGUMENT, f"an upload that ends after {length} bytes")
    # A handler gives its memory back after its answer.
    until = time.monotonic() + h2.PATIENCE
    while b"\nassay_memory_budget_used_bytes 0\n" not in plain(address, "GET", "/metrics")[1]:
        if time.monotonic() > until:
            sys.exit("Memory is in use after all uploads.")
        time.sleep(0.05)


def parca(address, fixtures):
    """Samples of Parca's agent: both versions are stored the same, each once."""
    connection = h2.Connection(address)
    service = "/parca.profilestore.v1alpha1.ProfileStoreService/"

    def load(name):
        with open(f"{fixtures}/parca/{name}.arrow", "rb") as file:
            return file.read()

    def write(*records):
        """Sends one record after the other, each when the one before has its answer."""
        stream = connection.open("POST", service + "Write", [("content-type", "application/grpc")])
        answer = connection.answers[stream]
        for count, record in enumerate(records):
            connection.until(lambda: answer.ended or len(list(messages(answer.body))) == count, "an answer to samples")
            if not answer.ended:
                connection.data(stream, framed(field(1, record)), ended=False)
        return connection.wait(stream)

    period, wanted = 52631578, {}
    for _ in range(2):  # the second time nothing changes
        for name in ("v2-lz4", "v2-lz4"):
            answer = connection.call(service + "WriteArrow", field(1, load(name)))
            expect((answer.grpc, answer.message), (OK, b""), f"{name}: {answer.trailers or answer.headers}")
        wanted = {name: total(address, name) for name in ("app", "script", "batch")}
        stacks = "".join(wanted["app"])
        for part in (f" {2 * period}", f"vfs_read {period}"):
            if part not in stacks:
                sys.exit(f"The samples are not as they were sent: {wanted['app']}")
    if not any(f"handle;Large.sum of all elements;Small.get {period}" in line for line in wanted["script"]):
        sys.exit(f"The samples are not as they were sent: {wanted['script']}")
    expect(wanted["batch"], ["", f"[truncated] {period}"], "a walk that failed")
    status, _ = plain(address, "POST", service + "WriteArrow", field(1, load("v2")), Content_Type="application/proto")
    expect(status, 200, "WriteArrow without gRPC")
    answer = write(load("v1"), load("v1-stacks"))
    expect(answer.grpc, OK, f"Write: {answer.trailers or answer.headers}")
    asked = next(messages(answer.body))
    if b"workidlescriptkernelaborted" not in asked:
        sys.exit(f"The server did not ask for the stacks: {asked!r}")
    for name, lines in wanted.items():
        triple = [" ".join(line.split(" ")[:-1] + [str(3 * int(line.split(" ")[-1]))]) if line else "" for line in lines]
        expect(total(address, name), sorted(triple), f"{name} in three ways")
    for label, there in (("thread_name", False), ("cpu", False), ("thread_id", False), ("comm", True)):
        _, values = plain(address, "GET", f"/api/v1/label/{label}/values?from=1980-01-01&to=now%2B1d")
        expect(json.loads(values) != [], there, f"values of {label}")
    # Schema 2 needs no second message; what is wrong has an error, and nothing of it is stored.
    expect(write(load("v2-zstd")).grpc, OK, "Write of samples with their stacks")
    for sent, code in ((b"", INVALID_ARGUMENT), (field(1, b"nonsense"), INVALID_ARGUMENT), (b"\xff", INVALID_ARGUMENT),
                       (field(1, load("v2")[:3000]), INVALID_ARGUMENT), (field(1, load("v1-stacks")), INVALID_ARGUMENT)):
        expect(connection.call(service + "WriteArrow", sent).grpc, code, f"WriteArrow of {sent[:20]!r}")
    expect(write(b"nonsense").grpc, INVALID_ARGUMENT, "Write of nonsense")
    expect(write(load("v1"), b"nonsense").grpc, INVALID_ARGUMENT, "stacks that are nonsense")
    stream = connection.open("POST", service + "Write", [("content-type", "application/grpc")])
    connection.data(stream, framed(field(1, load("v1"))))
    expect(connection.wait(stream).grpc, INVALID_ARGUMENT, "samples whose stacks never come")
    expect(connection.call(service + "Other", b"").grpc, UNIMPLEMENTED, "an unknown method")
    expect(plain(address, "POST", service + "Write", b"", Content_Type="application/proto")[0], 501, "Write without gRPC")
    expect(plain(address, "POST", service + "WriteArrow", b"{}", Content_Type="application/json")[0], 415, "WriteArrow as JSON")


def binary(address, fixtures, path, build_id, hot, main):
    """Addresses of Parca's agent are the linker's: the server names them by what was uploaded, also
    when they come back from an export of before."""
    connection = h2.Connection(address)
    with open(f"{fixtures}/parca/v2.arrow", "rb") as file:
        samples = file.read()
    for before, after in ((b"00112233445566778899aabbccddeeff00112233", build_id.encode()),
                          (struct.pack("<Q", 0x401136), struct.pack("<Q", int(hot, 16) + 4)),
                          (struct.pack("<Q", 0x401200), struct.pack("<Q", int(main, 16) + 4))):
        expect((samples.count(before), len(before)), (1, len(after)), f"{before!r} in the fixture")
        samples = samples.replace(before, after)
    answer = connection.call("/parca.profilestore.v1alpha1.ProfileStoreService/WriteArrow", field(1, samples))
    expect(answer.grpc, OK, f"WriteArrow: {answer.trailers or answer.headers}")
    query = "process_cpu:cpu:nanoseconds:cpu:nanoseconds%7Bservice_name%3D%22app%22%7D&from=1980-01-01&to=now%2B1d"
    for name, format in (("unnamed.pb.gz", "pprof"), ("unnamed.otlp", "otlp")):
        code, exported = plain(address, "GET", f"/api/v1/profile?format={format}&query={query}")
        expect(code, 200, f"the export as {format}")
        with open(name, "wb") as file:
            file.write(exported)
        expect(plain(address, "POST", f"/api/v1/push?service_name=again-{format}", exported)[0], 200, f"{name} as a push")
    wanted = total(address, "app")
    if "main;hot" in "".join(wanted):
        sys.exit(f"There are names that nobody sent: {wanted}")
    with open(path, "rb") as file:
        upload_binary(connection, file.read(), build_id)
    wanted = total(address, "app")
    for line in (f"main {52631578}", f"main;hot {2 * 52631578}", f"main;hot;vfs_read {52631578}"):
        if line not in wanted:
            sys.exit(f"No {line!r} in {wanted}")
    expect(total(address, "again-pprof"), wanted, "the export as pprof, pushed")
    # An OTLP profile without a period doesn't name its type.
    expect(total(address, "again-otlp", "process_cpu:cpu:nanoseconds::"), wanted, "the export as OTLP, pushed")


def watch(address, fixtures, pid):
    """Health as a stream: what is, and what changes; not for more clients than have a thread."""
    headers, path = [("content-type", "application/grpc")], "/grpc.health.v1.Health/Watch"
    connection = h2.Connection(address)

    def begin(name):
        stream = connection.open("POST", path, headers)
        connection.data(stream, framed(field(1, name)))
        return stream, connection.answers[stream]

    streams = [begin(name) for name in ("", "push.v1.PusherService", "none")]
    for (_, answer), status in zip(streams, (1, 1, 3)):
        connection.until(lambda: answer.body, "the status")
        expect(list(messages(answer.body)), [field(1, status)], "the status")
    expect(connection.call(path, b"\xff").grpc, INVALID_ARGUMENT, "watching nonsense")
    expect(connection.call(path, b"\0" * 5000).grpc, RESOURCE_EXHAUSTED, "watching a large name")
    expect(plain(address, "POST", path, b"", Content_Type="application/proto")[0], 501, "Watch without gRPC")
    # Of all 17 one is refused, whichever a thread took last.
    more = [begin("") for _ in range(14)]
    connection.until(lambda: all(a.body or a.ended for _, a in more), "the refusal of the 17th")
    expect([a.grpc for _, a in more if a.ended], [RESOURCE_EXHAUSTED], "the 17th")
    for stream in (s for s, a in more if not a.ended):  # whoever goes makes room
        connection.send(h2.frame(h2.RST_STREAM, stream=stream, payload=struct.pack(">I", h2.CANCEL)))

    def refused():
        _, again = begin("")
        connection.until(lambda: again.ended or again.body, "another")
        return again.ended

    until = time.monotonic() + h2.PATIENCE
    while refused():
        if time.monotonic() > until:
            sys.exit("Calls that were cancelled still count.")
        time.sleep(0.1)
    os.kill(int(pid), signal.SIGTERM)
    _, answer = streams[0]
    connection.until(lambda: answer.ended, "the end")
    expect(list(messages(answer.body))[0], field(1, 1), "the first status")


def interop(address, fixtures):
    """The service of gRPC's own test clients; tests/long/grpc-interop.sh has those."""
    path = "/grpc.testing.TestService/"
    connection = h2.Connection(address)
    text = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"
    answer = connection.call(path + "UnaryCall", field(7, field(1, 2) + field(2, text)))
    expect(answer.grpc, UNKNOWN, "the status that was asked for")
    expect(urllib.parse.unquote(answer.header("grpc-message")), text, "its message")
    expect(len(connection.call(path + "UnaryCall", field(2, 300000)).message), 300008, "a large answer")
    stream = connection.open("POST", path + "FullDuplexCall", [("content-type", "application/grpc")])
    for size in (31415, 9, 2653, 58979):  # each answer is there before the next message goes off
        seen = len(list(messages(connection.answers[stream].body)))
        connection.data(stream, framed(field(2, field(1, size))), ended=False)
        connection.until(lambda: len(list(messages(connection.answers[stream].body))) > seen, "an answer")
    connection.data(stream, b"")
    expect(connection.wait(stream).grpc, OK, "messages both ways")
    expect(connection.call(path + "None", b"").grpc, UNIMPLEMENTED, "an unknown method")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
