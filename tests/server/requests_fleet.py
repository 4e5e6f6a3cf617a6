# SPDX-License-Identifier: Apache-2.0
"""requests_fleet.py DIRECTORY START: the spans and profiles of a chain of two services, as an agent
and an OpenTelemetry SDK would send them. `shop` serves GET /order/{id} and asks `stock` for each
order. Of 2,000 orders, those on three routes are slow one time in fifty: on /order one waits for a
lock in shop, on /search for a query in stock, on /report one burns CPU in shop. Each request has a
sample in the span that was active; a few spans are missing, and some name no parent that is there.

Writes traces.pb and traces.json, and PROFILE-SERVICE-TYPE-STATE.pb for each window."""

import collections
import json
import pathlib
import struct
import subprocess
import sys

from protobuf import field

REQUESTS, SLOW = 2000, 50
MS = 10**6
Span = collections.namedtuple("Span", "trace id parent service name kind start ms route method status")


def fixed64(number, value):
    return bytes([number << 3 | 1]) + struct.pack("<Q", value)


def attribute(key, value):
    return field(1, key) + field(2, field(3, value) if isinstance(value, int) else field(1, value))


def ids(request, span):
    return f"{request + 1:032x}", f"{(request + 1) * 16 + span:016x}"


def make(start):
    """The spans, and samples as (service, type, state, stack, value, trace, span)."""
    spans, samples = [], []

    def sample(service, kind, state, stack, value, trace, span):
        samples.append((service, kind, state, stack, value, trace, span))

    for i in range(REQUESTS):
        route = ("/order/{id}", "/search", "/report")[i % 3]
        slow = i // 3 % SLOW == 7
        at = start * 1000 * MS + i * 15 * MS
        trace, root = ids(i, 0)
        _, inner = ids(i, 1)
        _, client = ids(i, 2)
        _, server = ids(i, 3)
        lock = 400 if slow and route == "/order/{id}" else 0
        query = 700 if slow and route == "/search" else 5
        burn = 300 if slow and route == "/report" else 10
        total = 20 + lock + query + burn
        status = 2 if slow and route == "/search" else 0
        path = route.replace("{id}", str(i))
        spans.append(Span(trace, root, "", "shop", f"GET {path}", 2, at, total, path, "GET", status))
        if i % 10 != 9:  # missing spans are normal
            spans.append(Span(trace, inner, root, "shop", "handle", 1, at, total - 1, "", "", 0))
        spans.append(Span(trace, client, inner, "shop", "GET stock", 3, at + 5 * MS, query + 3, "", "GET", 0))
        spans.append(Span(trace, server, client, "stock", "GET /check", 2, at + 6 * MS, query + 1, "/check", "GET", 0))
        sample("shop", "cpu", "", "main;serve;render", burn * MS, trace, inner)
        if slow and route == "/report":
            sample("shop", "cpu", "", "main;serve;render;regex_backtrack", 290 * MS, trace, inner)
        sample("stock", "cpu", "", "main;serve;check", 1 * MS, trace, server)
        sample("shop", "wall", "running", "main;serve;render", burn * MS, trace, inner)
        sample("shop", "wall", "network", "main;serve;fetch;recv", query * MS, trace, client)
        sample("stock", "wall", "disk", "main;serve;check;read_rows", query * MS, trace, server)
        if lock:
            sample("shop", "wall", "lock", "main;serve;take;[lock cart_mutex]", lock * MS, trace, inner)
    # Samples outside of requests, and of a trace that nobody has heard of.
    sample("shop", "cpu", "", "main;collect_garbage", 500 * MS, "", "")
    sample("shop", "cpu", "", "main;serve;lost", 20 * MS, "f" * 32, "f" * 16)
    return spans, samples


def encode(spans):
    body = b""
    for service in sorted({s.service for s in spans}):
        resource = field(1, field(1, attribute("service.name", service)))
        scope = b""
        for s in (s for s in spans if s.service == service):
            one = field(1, bytes.fromhex(s.trace)) + field(2, bytes.fromhex(s.id))
            one += field(4, bytes.fromhex(s.parent)) if s.parent else b""
            one += field(5, s.name) + field(6, s.kind)
            one += fixed64(7, s.start) + fixed64(8, s.start + s.ms * MS)
            one += field(9, attribute("url.path", s.route)) if s.route else b""
            one += field(9, attribute("http.request.method", s.method)) if s.method else b""
            one += field(9, attribute("http.response.status_code", 500 if s.status else 200))
            one += field(15, field(3, s.status)) if s.status else b""
            scope += field(2, one)
        body += field(1, resource + field(2, scope))
    return body


def encode_json(spans):
    def value(key, content):
        kind = "intValue" if isinstance(content, int) else "stringValue"
        return {"key": key, "value": {kind: str(content)}}

    resources = []
    for service in sorted({s.service for s in spans}):
        scope = []
        for s in (s for s in spans if s.service == service):
            attributes = [value("http.response.status_code", 500 if s.status else 200)]
            attributes += [value("url.path", s.route)] if s.route else []
            attributes += [value("http.request.method", s.method)] if s.method else []
            scope.append({"traceId": s.trace, "spanId": s.id, "parentSpanId": s.parent,
                          "name": s.name, "kind": s.kind, "startTimeUnixNano": str(s.start),
                          "endTimeUnixNano": str(s.start + s.ms * MS),
                          "attributes": attributes, "status": {"code": s.status}})
        resources.append({"resource": {"attributes": [value("service.name", service)]},
                          "scopeSpans": [{"spans": scope}]})
    return json.dumps({"resourceSpans": resources})


def main():
    directory, start = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    spans, samples = make(start)
    directory.mkdir(exist_ok=True)
    (directory / "traces.pb").write_bytes(encode(spans))
    (directory / "traces.json").write_text(encode_json(spans))
    profiles = collections.defaultdict(list)
    for service, kind, state, stack, value, trace, span in samples:
        text = f"{stack}={value}" + (f",trace_id={trace},span_id={span}" if trace else "")
        profiles[service, kind].append(text + (f",state={state}" if state else ""))
    here = pathlib.Path(__file__).parent
    for (service, kind), texts in profiles.items():
        name = directory / f"profile-{service}-{kind}.pb"
        subprocess.run([sys.executable, here / "window_pprof.py", name, kind, "nanoseconds",
                        str(start), "40", *texts], check=True)


if __name__ == "__main__":
    main()
