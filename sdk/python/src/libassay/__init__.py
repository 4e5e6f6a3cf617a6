# SPDX-License-Identifier: Apache-2.0
"""Lets profilers outside of the process see which request a thread works on: a wrapper of libassay.

    libassay.init("shop", "1.4.2")
    with libassay.request("GET /user/{id}", traceparent) as span:
        span.set("tenant", "blue")

Without libassay.so.1 nothing is published, and everything else works.
"""

import ctypes
import glob
import os
import time

__all__ = ["AVAILABLE", "Request", "Span", "attach", "count", "init", "request", "resource", "span"]
__version__ = "1.0.0"


class _Span(ctypes.Structure):
    _fields_ = [
        ("before", ctypes.c_ubyte * 28),
        ("order", ctypes.c_uint),
        ("thread", ctypes.c_void_p),
    ]


def _load():
    places = [os.environ.get("LIBASSAY_LIBRARY") or "libassay.so.1"]
    places += glob.glob("/usr/lib/*/assay/libassay.so.1")
    library = None
    for place in places:
        try:
            library = ctypes.CDLL(place)
            break
        except OSError:
            continue
    if library is None:
        return None
    span = ctypes.POINTER(_Span)
    text, number = ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("init", number, [text, text]),
        ("set_resource", number, [text, text]),
        ("begin", None, [span]),
        ("begin_traceparent", number, [span, text]),
        ("attach", None, [span, text, text, ctypes.c_uint]),
        ("end", number, [span]),
        ("key", number, [text]),
        ("set", number, [number, text]),
        ("current", number, [text, text]),
        ("traceparent", None, [text]),
        ("route", number, [text]),
        ("count", None, [number, ctypes.c_uint64, number]),
    ):
        function = getattr(library, "assay_" + name)
        function.restype = result
        function.argtypes = arguments
    return library


_library = _load()
AVAILABLE = _library is not None
_keys = {}
_routes = {}


def _bytes(text):
    return None if text is None else str(text).encode()


def _check(code, what):
    if code < 0:
        raise OSError(-code, f"{what}: {os.strerror(-code)}")
    return code


def init(service=None, version=None):
    """Publishes the names of the service and of its version. Call it once, early."""
    if _library:
        _check(_library.assay_init(_bytes(service), _bytes(version)), "libassay.init")


def resource(key, value):
    """Another attribute of the process, such as deployment.environment.name; None removes it."""
    if _library:
        _check(_library.assay_set_resource(_bytes(key), _bytes(value)), "libassay.resource")


def _number(numbers, register, name):
    number = numbers.get(name)
    if number is None:
        number = numbers[name] = register(_bytes(name))
    return number


def count(route, seconds, failed=False):
    """Counts a finished request. Beyond 256 routes it is not counted."""
    if _library:
        number = _number(_routes, _library.assay_route, route)
        _library.assay_count(number, max(0, int(seconds * 1e9)), failed)


class Span:
    """A span of the thread that enters it."""

    def __init__(self, traceparent=None, ids=None):
        self._traceparent = traceparent
        self._ids = ids
        self._span = _Span()

    def __enter__(self):
        if not _library:
            return self
        if self._ids:
            _library.assay_attach(self._span, *self._ids)
        elif self._traceparent is not None:
            _library.assay_begin_traceparent(self._span, _bytes(self._traceparent))
        else:
            _library.assay_begin(self._span)
        return self

    def __exit__(self, kind, value, trace):
        if _library:
            _library.assay_end(self._span)

    def set(self, name, value):
        """Sets an attribute until the span ends. Returns False if it does not fit."""
        if not _library:
            return False
        number = _number(_keys, _library.assay_key, name)
        return number >= 0 and _library.assay_set(number, _bytes(value)) >= 0

    @property
    def traceparent(self):
        """The thread's current span as W3C's header; "" without the library."""
        if not _library:
            return ""
        text = ctypes.create_string_buffer(56)
        _library.assay_traceparent(text)
        return text.value.decode()


class Request(Span):
    """A span with the attribute http.route that is counted when it ends."""

    def __init__(self, route, traceparent=None, ids=None):
        super().__init__("" if traceparent is None else traceparent, ids)
        self.route = route
        self.failed = False

    def __enter__(self):
        super().__enter__()
        self._began = time.monotonic()
        self.set("http.route", self.route.split(" ", 1)[-1])
        return self

    def __exit__(self, kind, value, trace):
        count(self.route, time.monotonic() - self._began, self.failed or kind is not None)
        super().__exit__(kind, value, trace)


def span(traceparent=None):
    """A span within the thread's current one, or in the trace of W3C's header."""
    return Span(traceparent)


def request(route, traceparent=None):
    """A request of a route, "GET /user/{id}", that a caller sent with this header, or nobody."""
    return Request(route, traceparent)


def attach(trace_id, span_id, sampled=True):
    """A span with ids of another tracer: numbers, or hexadecimal digits."""

    def raw(value, length):
        return bytes.fromhex(value) if isinstance(value, str) else int(value).to_bytes(length, "big")

    return Span(ids=(raw(trace_id, 16), raw(span_id, 8), int(sampled)))
