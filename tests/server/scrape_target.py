# SPDX-License-Identifier: Apache-2.0
# A program to scrape that says what it is told to: known profiles under /good, and under other
# prefixes all that targets do wrong. Its port is written to the file named first; a certificate
# and key make it speak TLS.
import base64, gzip, http.server, os, ssl, sys, threading, time

from protobuf import field, varint

STEPS = 6  # values grow until then, and stay
RESTART = 4  # the process of /restarts is another one from then on


def profile(types, period, rows):
    """rows: ([function, ...] innermost first, [value, ...])"""
    strings, functions = [""], {}

    def string(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    out = b"".join(field(1, field(1, string(t)) + field(2, string(u))) for t, u in types)
    body = b""
    for names, values in rows:
        ids = [functions.setdefault(n, len(functions) + 1) for n in names]
        body += field(2, field(1, b"".join(map(varint, ids))) + field(2, b"".join(map(varint, values))))
    for name, id in functions.items():
        # Addresses are new each time: they mustn't matter.
        address = int.from_bytes(os.urandom(4), "little")
        body += field(4, field(1, id) + field(3, address) + field(4, field(1, id)))
        body += field(5, field(1, id) + field(2, string(name)))
    out += body + field(9, time.time_ns())
    out += field(11, field(1, string(period[0])) + field(2, string(period[1]))) + field(12, 1)
    return gzip.compress(out + b"".join(field(6, s.encode()) for s in strings))


def memory(step, grown):
    types = [("alloc_objects", "count"), ("alloc_space", "bytes"),
             ("inuse_objects", "count"), ("inuse_space", "bytes")]
    rows = [(["leaf", "main"], [grown, 1000 * grown, 1, 500]),
            (["other", "main"], [3 * grown, 77 * grown, 2, 70])]
    if step >= 3:
        rows.append((["late", "main"], [grown, 11 * grown, 0, 0]))
    return profile(types, ("space", "bytes"), rows)


def space(grown, late):
    return (1077 + (11 if late else 0)) * grown


counts, lock = {}, threading.Lock()


class Target(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/octet-stream", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        prefix = self.path.split("/")[1].split("?")[0]
        with lock:
            step = counts[self.path] = counts.get(self.path, 0) + 1
        getattr(self, "do_" + prefix, self.do_missing)(step)

    def do_missing(self, step):
        self.answer(404, b"nothing here")

    def do_good(self, step):
        self.answer(200, memory(step, min(step, STEPS)))

    do_exact = do_good  # for one job only: requests are counted

    def do_restarts(self, step):
        grown = min(step - RESTART + 1, STEPS) if step >= RESTART else 10 * step
        self.answer(200, memory(step, grown))

    def do_hang(self, step):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        time.sleep(600)

    def do_garbage(self, step):
        self.answer(200, b"\x1f\x8b\x08garbage" * 100)

    def do_text(self, step):
        self.answer(200, b"main;a 1\nmain;b 2\n")

    def do_empty(self, step):
        self.answer(200, b"")

    def do_page(self, step):
        self.answer(200, b"<html>", "text/html; charset=utf-8")

    def do_failing(self, step):
        self.answer(500, b"Could not enable CPU profiling")

    def do_redirect(self, step):
        self.answer(302, b"", Location=self.path.replace("/redirect", "/good", 1))

    def do_circle(self, step):
        self.answer(302, b"", Location=self.path)

    def do_short(self, step):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(memory(step, 1))
        self.close_connection = True

    def do_endless(self, step):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(bytes(65536))

    def do_password(self, step):
        good = "Basic " + base64.b64encode(b"me:se cret").decode()
        self.guarded(step, good)

    def do_token(self, step):
        self.guarded(step, "Bearer abc")

    def do_scheme(self, step):
        self.guarded(step, "Token abc")

    def guarded(self, step, good):
        if self.headers["Authorization"] == good:
            self.do_good(step)
        else:
            self.answer(401, b"who are you?")

    def do_query(self, step):
        query = self.path.split("?")[1]
        self.do_good(step) if query == "a=x%20y&seconds=2" else self.answer(400, query.encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *args):
        pass


if sys.argv[1] == "profile":  # how much it has grown
    sys.stdout.buffer.write(memory(3, int(sys.argv[2])))
    sys.exit()
if sys.argv[1] == "expected":
    # What differences of alloc_space add up to, all scrapes being stored: the first says nothing
    # about what was before it, nor does the first after a restart.
    if sys.argv[2] == "exact":
        print(space(STEPS, True) - space(1, False))
    else:
        before = space(10 * (RESTART - 1), True) - space(10, False)
        print(before + space(STEPS, True) - space(1, True))
    sys.exit()

server = Server(("127.0.0.1", 0), Target)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
