#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A current ClickHouse behind HTTP, for tests: front.py DIRECTORY PORT. The engine is chdb, which
has no server. The front understands what assay sends: SQL in the body, or in `query` with rows in
the body; `database`; settings, which must exist; gzip. Requests are answered one after another."""

import gzip
import http.server
import os
import re
import sys
import threading
import urllib.parse

from chdb import session

directory, port = sys.argv[1], int(sys.argv[2])
engine = session.Session(os.path.join(directory, "data"))
lock = threading.Lock()
NOT_SETTINGS = {"query", "database", "enable_http_compression", "wait_end_of_query"}
known = set(str(engine.query("SELECT name FROM system.settings", "TSV")).split())
INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\) FORMAT RowBinary$")


class Refused(Exception):
    pass


def run(sql, form):
    answer = engine.query(sql, form)
    return answer.bytes() if answer is not None else b""


def insert(table, columns, rows):
    """chdb takes rows from a file; they are one block as over HTTP."""
    names = [name.strip(" `") for name in columns.split(",")]
    types = dict(
        line.split("\t")[:2]
        for line in run(f"DESCRIBE TABLE {table}", "TSV").decode().splitlines()
    )
    structure = ", ".join(
        f"`{name}` {types[name]}".replace("\\'", "'") for name in names
    )
    path = os.path.join(directory, "rows")
    with open(path, "wb") as file:
        file.write(rows)
    structure = structure.replace("'", "\\'")
    run(
        f"INSERT INTO {table} ({columns}) SELECT * FROM file('{path}', RowBinary, '{structure}') "
        "SETTINGS max_threads = 1, max_insert_threads = 1",
        "TSV",
    )
    return b""


def answer(parameters, body):
    with lock:
        for name, value in parameters.items():
            if name not in NOT_SETTINGS:
                if name not in known:
                    raise Refused(f"Code: 115. DB::Exception: Unknown setting {name}")
                run(f"SET {name} = {value}", "TSV")
        run(f"USE {parameters.get('database', 'default')}", "TSV")
        match = INSERT.match(parameters.get("query", ""))
        if match:
            return insert(match[1], match[2], body)
        sql, form = re.sub(r" FORMAT TSV$", "", body.decode()), "TSV"
        if sql.endswith(" FORMAT RowBinary"):
            sql, form = sql[: -len(" FORMAT RowBinary")], "RowBinary"
        return run(sql, form)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        url = urllib.parse.urlsplit(self.path)
        parameters = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        try:
            status, content = 200, answer(parameters, body)
        except Exception as error:  # what ClickHouse says, with its code
            status, content = 500, str(error).encode()
        zipped = "gzip" in self.headers.get("Accept-Encoding", "") and len(content) > 1000
        if zipped:
            content = gzip.compress(content, 1)
        self.send_response(status)
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", port), Handler)
print(server.server_port, flush=True)
server.serve_forever()
