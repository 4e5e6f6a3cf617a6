# SPDX-License-Identifier: Apache-2.0
"""A small HTTP/2 client for tests: RFC 9113 frames and RFC 7541 headers, without indexing on the
sending side, so that a test decides over every byte. Not for anything but tests."""

import os
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
PATIENCE = float(os.environ.get("H2_PATIENCE", "120"))  # seconds: for a condition, on any machine

# The static table: names, and values where there are any.
STATIC = [(":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
          (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
          (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
          (":status", "404"), (":status", "500"), ("accept-charset", ""),
          ("accept-encoding", "gzip, deflate")] + [(name, "") for name in (
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization "
    "cache-control content-disposition content-encoding content-language content-length "
    "content-location content-range content-type cookie date etag expect expires from host "
    "if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link "
    "location max-forwards proxy-authenticate proxy-authorization range referer refresh "
    "retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary "
    "via www-authenticate").split()]

# Lengths of the Huffman codes of all bytes and of the end; the codes follow from them in order.
LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b08060606"
    "0505050606060606060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c14161414161616171617171717171817"
    "1818161718171717171516171617171816151416161717151716161815161717151516151716171714161616171616171a"
    "1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b14181415161515171616191918181a171a1b"
    "1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e")


def _codes():
    codes, code, last = {}, 0, 0
    for symbol in sorted(range(257), key=lambda s: (LENGTHS[s], s)):
        code <<= LENGTHS[symbol] - last
        last = LENGTHS[symbol]
        codes[(last, code)] = symbol
        code += 1
    return codes


CODES = _codes()


def unhuffman(data):
    out, code, length = bytearray(), 0, 0
    for byte in data:
        for bit in range(7, -1, -1):
            code, length = code << 1 | byte >> bit & 1, length + 1
            symbol = CODES.get((length, code))
            if symbol is not None:
                out.append(symbol)
                code = length = 0
    return bytes(out)


def integer(value, bits, flags=0):
    most = (1 << bits) - 1
    if value < most:
        return bytes([flags | value])
    out, value = bytearray([flags | most]), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return integer(len(value), 7) + value


def encode(headers):
    """Literals, never indexed."""
    return b"".join(b"\x10" + text(name) + text(value) for name, value in headers)


class Decoder:
    def __init__(self):
        self.table = []

    def _integer(self, data, at, bits):
        most = (1 << bits) - 1
        value, at, shift = data[at] & most, at + 1, 0
        if value == most:
            while True:
                value += (data[at] & 127) << shift
                shift, at = shift + 7, at + 1
                if not data[at - 1] & 128:
                    break
        return value, at

    def _text(self, data, at):
        coded = data[at] & 128
        length, at = self._integer(data, at, 7)
        value = data[at:at + length]
        return (unhuffman(value) if coded else value).decode("latin-1"), at + length

    def _entry(self, index):
        return STATIC[index - 1] if index <= len(STATIC) else self.table[index - 1 - len(STATIC)]

    def decode(self, data):
        headers, at = [], 0
        while at < len(data):
            byte = data[at]
            if byte & 0x80:
                index, at = self._integer(data, at, 7)
                headers.append(self._entry(index))
                continue
            if byte & 0xe0 == 0x20:
                _, at = self._integer(data, at, 5)  # a size of the table
                continue
            kept = byte & 0x40
            index, at = self._integer(data, at, 6 if kept else 4)
            if index:
                name = self._entry(index)[0]
            else:
                name, at = self._text(data, at)
            value, at = self._text(data, at)
            headers.append((name, value))
            if kept:
                self.table.insert(0, (name, value))
        return headers


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Closed(Exception):
    pass


class Answer:
    def __init__(self):
        self.headers, self.trailers, self.body = None, None, b""
        self.ended, self.reset = False, None

    @property
    def status(self):
        return int(dict(self.headers)[":status"]) if self.headers else None

    def header(self, name):
        for name_, value in (self.headers or []) + (self.trailers or []):
            if name_ == name:
                return value
        return None

    @property
    def grpc(self):
        value = self.header("grpc-status")
        return None if value is None else int(value)

    @property
    def message(self):
        return self.body[5:5 + struct.unpack(">I", self.body[1:5])[0]]


class Connection:
    """One connection. `window` is what the server may send of each stream before it must wait."""

    def __init__(self, address, tls=None, window=1 << 20, settings=True, preface=True):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.authority, self.scheme = address, "https" if tls else "http"
        self.received, self.answers, self.decoder = b"", {}, Decoder()
        self.next_id, self.goaway, self.pongs = 1, None, 0
        self.settings, self.settings_acks, self.windows = {}, 0, {0: 65535}
        self.reading, self.answer_settings = True, settings
        if preface:
            self.send(PREFACE + frame(SETTINGS, payload=struct.pack(">HI", 4, window)) +
                      frame(WINDOW_UPDATE, payload=struct.pack(">I", 1 << 30)))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as failure:
            raise Closed(str(failure))

    def close(self):
        self.socket.close()

    # ---- requests ----

    def head(self, method, path, headers=(), authority=None):
        return encode([(":method", method), (":scheme", self.scheme), (":path", path),
                       (":authority", authority or self.authority)] + list(headers))

    def open(self, method, path, headers=(), ended=False):
        stream, self.next_id = self.next_id, self.next_id + 2
        self.answers[stream] = Answer()
        self.windows[stream] = self.settings.get(4, 65535)
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), stream,
                        self.head(method, path, headers)))
        return stream

    def data(self, stream, body, ended=True):
        """Within the server's windows."""
        at = 0
        while at < len(body) or ended:
            if at < len(body):
                room = min(self.windows[stream], self.windows[0], 16384)
                if room <= 0:
                    if self.answers[stream].ended:
                        return
                    self.step()
                    continue
                piece = body[at:at + room]
            else:
                piece = b""
            at += len(piece)
            self.windows[stream] -= len(piece)
            self.windows[0] -= len(piece)
            last = ended and at >= len(body)
            self.send(frame(DATA, END_STREAM if last else 0, stream, piece))
            if last or not piece:
                return

    def request(self, method, path, headers=(), body=b""):
        stream = self.open(method, path, headers, ended=not body)
        if body:
            self.data(stream, body)
        return self.wait(stream)

    def call(self, path, message, headers=(), flags=0, content_type="application/grpc"):
        prefix = bytes([flags]) + struct.pack(">I", len(message))
        return self.request("POST", path, [("content-type", content_type), ("te", "trailers")] +
                            list(headers), prefix + message)

    # ---- answers ----

    def wait(self, stream):
        answer = self.answers[stream]
        while not answer.ended:
            self.step()
        return answer

    def until(self, condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise SystemExit(f"Timed out: {what}")
            self.step()

    def read_frame(self):
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3], "big"):
            try:
                got = self.socket.recv(65536)
            except ConnectionResetError:
                got = b""
            if not got:
                raise Closed("the server closed the connection")
            self.received += got
        length = int.from_bytes(self.received[:3], "big")
        head, payload = self.received[:9], self.received[9:9 + length]
        self.received = self.received[9 + length:]
        return head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7fffffff, payload

    def step(self):
        kind, flags, stream, payload = self.read_frame()
        answer = self.answers.get(stream)
        if kind == SETTINGS and flags & ACK:
            self.settings_acks += 1
        elif kind == SETTINGS:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:
                    for known in self.windows:
                        if known:
                            self.windows[known] += value - self.settings.get(4, 65535)
                self.settings[name] = value
            if self.answer_settings:
                self.send(frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, payload=payload))
        elif kind == PING:
            self.pongs += 1
        elif kind == WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, 65535) + int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.goaway = int.from_bytes(payload[4:8], "big")
        elif kind == RST_STREAM and answer:
            answer.reset = int.from_bytes(payload, "big")
            answer.ended = True
        elif kind == HEADERS and answer:
            headers = self.decoder.decode(payload)
            if answer.headers is None:
                answer.headers = headers
            else:
                answer.trailers = headers
            answer.ended |= bool(flags & END_STREAM)
        elif kind == DATA and answer:
            answer.body += payload
            answer.ended |= bool(flags & END_STREAM)
            if payload and not answer.ended and self.reading:
                self.send(frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", len(payload))))
        return kind


def tls_context(authority, protocols=("h2",), certificate=None, key=None):
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(list(protocols))
    if certificate:
        context.load_cert_chain(certificate, key)
    return context
