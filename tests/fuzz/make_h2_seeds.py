#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_h2_seeds.py DIRECTORY: writes the seeds of fuzz_h2.c."""

import pathlib
import ssl
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))
import h2  # noqa: E402


def head(path, *more):
    return h2.encode([(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a")] + list(more))


def hello(*protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(received, sent).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


def main():
    out = pathlib.Path(sys.argv[1])
    grpc = ("content-type", "application/grpc")
    settings = h2.frame(h2.SETTINGS) + h2.frame(h2.SETTINGS, h2.ACK)
    get = h2.frame(h2.HEADERS, 5, 1, h2.encode([(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]))
    message = b"\0" + struct.pack(">I", 3) + b"abc"
    call = h2.frame(h2.HEADERS, 4, 1, head("/a.B/Echo", grpc, ("grpc-timeout", "1S"))) + h2.frame(h2.DATA, 1, 1, message)
    talk = h2.frame(h2.HEADERS, 4, 1, head("/a.B/Converse", grpc)) + h2.frame(h2.DATA, 0, 1, message) + h2.frame(h2.DATA, 1, 1, message)
    seeds = {
        "frames": b"\0" + h2.PREFACE + settings + get + h2.frame(h2.PING, payload=b"\0" * 8),
        "resets": b"\0" + h2.PREFACE + h2.frame(h2.RST_STREAM, 0, 1, b"\0" * 4) * 250,
        "hello-h2": b"\1" + hello("h2", "http/1.1"),
        "hello-plain": b"\1" + hello(),
        "timeout": b"\2" + b"100m",
        "details": b"\2" + b"CA4SBHdhaXQ",
        "get": b"\3" + settings + get,
        "call": b"\3" + settings + call,
        "talk": b"\3" + settings + talk,
        "reset": b"\3" + settings + talk[:60] + h2.frame(h2.RST_STREAM, 0, 1, b"\0\0\0\x08") + call.replace(b"\0\0\0\1", b"\0\0\0\3"),
        "continuation": b"\3" + settings + h2.frame(h2.HEADERS, 1, 1, head("/")[:20]) + h2.frame(h2.CONTINUATION, 4, 1, head("/")[20:]),
        "large": b"\3" + settings + h2.frame(h2.HEADERS, 4, 1, head("/a.B/Echo")) + h2.frame(h2.DATA, 0, 1, b"x" * 9000) * 2,
    }
    for name, data in seeds.items():
        (out / name).write_bytes(data)


main()
