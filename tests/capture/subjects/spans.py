# SPDX-License-Identifier: Apache-2.0
"""The work of spans.c with libassay's wrapper for Python: the same lines, by the same arguments."""

import secrets
import sys
import threading
import time

import libassay

ROUTES = ["/cart", "/user/{id}", "/"]


def work(micros):
    until = time.thread_time_ns() + micros * 1000
    while time.thread_time_ns() < until:
        sum(range(2000))


def run(spans, micros, lines):
    for i in range(spans):
        trace, span = secrets.token_hex(16), secrets.token_hex(8)
        times = [time.time_ns()]
        with libassay.attach(trace, span) as own:
            own.set("http.route", ROUTES[i % 3])
            times.append(time.time_ns())
            work(micros)
            times.append(time.time_ns())
        times.append(time.time_ns())
        work(micros // 4)
        times.append(time.time_ns())
        libassay.count("GET " + ROUTES[i % 3], 0.001, i % 2)
        lines.append((threading.get_native_id(), trace, span, *times, i % 3))


threads, spans, micros = map(int, sys.argv[1:4])
assert libassay.AVAILABLE
libassay.init("shop", "1.2.3")
with libassay.span() as first:  # a name is published with its first use
    first.set("http.route", "/")
work(50000)
lines = []
running = [threading.Thread(target=run, args=(spans, micros, lines)) for _ in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
for line in lines:
    print(*line)
