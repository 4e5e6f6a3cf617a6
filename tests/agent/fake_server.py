# SPDX-License-Identifier: Apache-2.0
"""A server for uploads that behaves as badly as it is told.

    fake_server.py LOG MODE-FILE [PORT]

Prints its port. The mode file is read for each request: `ok`, `500`, `503`, `429 SECONDS`, `400`,
`413`, `422`, `401`, `proxy STATUS [ID]` (as from a proxy, which is no server of ours; for that batch
alone), `poison ID` (500 for that batch alone), `reset` (the connection breaks off), `lost` (the batch is
stored, and the connection breaks off before the answer), `hang`, `garbage`, or `token WORD` (401 without
that bearer token). Each line of the log is TIME WHAT ID: `stored` once for each batch that is stored, `again` for
one that was stored before, or the mode for one that wasn't. A stored batch is in LOG.d/ID, with its
encoding as LOG.d/ID.gzip or .zstd.
"""
import os, socket, struct, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log_path, mode_path = sys.argv[1:3]
log = open(log_path, "a", buffering=1)
os.makedirs(log_path + ".d", exist_ok=True)
lock = threading.Lock()
# A server that was killed knows what it had: what its log says.
stored = {line.split()[2] for line in open(log_path) if " stored " in line}
connections = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mode = [""]

    def log_message(self, *arguments):
        pass

    def setup(self):
        global connections
        super().setup()
        with lock:
            connections += 1
            log.write(f"{time.monotonic():.3f} connection {connections}\n")

    def note(self, what, batch):
        log.write(f"{time.monotonic():.3f} {what} {batch}\n")

    def store(self, batch, body):
        with lock:
            if batch in stored:
                self.note("again", batch)
                return
            stored.add(batch)
            encoding = self.headers.get("Content-Encoding", "plain")
            with open(f"{log_path}.d/{batch}.{encoding}", "wb") as file:
                file.write(body)
            assert abs(float(self.headers["X-Assay-Sent-At"]) - time.time()) < 600
            self.note("stored", batch)

    def answer(self, status, headers=()):
        self.send_response(status)
        if self.mode[0] != "proxy":
            self.send_header("X-Assay-Server", "1")
        for name, value in headers:
            self.send_header(name, value)
        body = b"" if status == 200 else b"The fake server says so.\n"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def break_off(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.rfile = self.wfile = open(os.devnull, "rb+", buffering=0)

    def do_GET(self):
        self.answer(404)

    def do_POST(self):
        batch = self.headers.get("X-Assay-Batch-Id", "-")
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) != length:  # whoever sent it is dead
            self.close_connection = True
            return
        if not self.path.endswith("/v1development/profiles"):
            self.answer(404)
            return
        mode = self.mode = open(mode_path).read().split()
        if mode[0] == "token":
            good = self.headers.get("Authorization") == "Bearer " + mode[1]
            mode = ["ok"] if good else ["401"]
        if mode[0] == "poison":
            mode = ["500"] if batch == mode[1] else ["ok"]
        if mode[0] == "proxy" and len(mode) > 2 and mode[2] != batch:
            mode = ["ok"]
        if mode[0] in ("ok", "lost"):
            self.store(batch, body)
        else:
            self.note(mode[0], batch)
        if mode[0] == "ok":
            self.answer(200)
        elif mode[0] == "429":
            self.answer(429, [("Retry-After", mode[1])])
        elif mode[0] == "proxy":
            self.answer(int(mode[1]))
        elif mode[0] in ("reset", "lost"):
            self.break_off()
        elif mode[0] == "hang":
            time.sleep(30)
            self.break_off()
        elif mode[0] == "garbage":
            self.wfile.write(b"\x16\x03 this is no HTTP \x00\xff\r\n" * 50)
            self.break_off()
        else:
            self.answer(int(mode[0]))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments):
        pass


server = Server(("127.0.0.1", int(sys.argv[3]) if len(sys.argv) > 3 else 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
