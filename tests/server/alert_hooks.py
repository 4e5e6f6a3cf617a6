# SPDX-License-Identifier: Apache-2.0
"""alert_hooks.py DIRECTORY: webhooks of several kinds on one port, which is written to DIRECTORY/port. Each request that
counts is a line in DIRECTORY/NAME.jsonl: its headers and body.

    /good     accepts
    /flaky    answers with 500 three times, then accepts
    /moved    redirects to /trap
    /huge     answers with 8 MiB
    /slow     never answers
    /cut      closes the connection twice, without an answer and in the middle of one, then accepts
    /drip     sends an answer of headers without an end, one each second
"""

import http.server
import json
import os
import sys
import threading
import time

DIRECTORY = sys.argv[1]
FAILURES = {"left": 3}
CUTS = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", b""]
FOREVER = threading.Event()


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        name = self.path.strip("/").split("?")[0]
        with open(os.path.join(DIRECTORY, f"{name}.jsonl"), "a") as file:
            file.write(json.dumps({"headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}) + "\n")
        status, answer = 200, b"{}"
        if name == "slow":
            FOREVER.wait()
        if name == "cut" and CUTS:
            self.wfile.write(CUTS.pop())
            self.close_connection = True
            return
        if name == "drip":
            self.drip()
        if name == "flaky" and FAILURES["left"]:
            FAILURES["left"] -= 1
            status = 500
        if name == "moved":
            status = 302
        if name == "huge":
            answer = b"x" * (8 << 20)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/trap")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        try:
            self.wfile.write(answer)
        except OSError:
            pass

    def drip(self):
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-More: of the same\r\n")
                time.sleep(1)
        except OSError:
            pass

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
server.daemon_threads = True
with open(os.path.join(DIRECTORY, "port.new"), "w") as file:
    file.write(str(server.server_port))
os.rename(os.path.join(DIRECTORY, "port.new"), os.path.join(DIRECTORY, "port"))
server.serve_forever()
