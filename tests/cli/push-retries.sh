# SPDX-License-Identifier: Apache-2.0
# `assay push` against a server that fails twice: it tries again with the same batch id, and gives up
# at once where trying again wouldn't help.
cat >server.py <<'PYTHON'
import http.server, json

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("requests", "a") as out:
            print(self.headers["X-Assay-Batch-Id"], len(body), self.path, file=out)
        seen = sum(1 for _ in open("requests"))
        status = 400 if "bad" in self.path else 503 if seen <= 2 else 200
        answer = {"windows": 1, "samples": 2} if status == 200 else {"message": f"answer {status}"}
        answer = json.dumps(answer).encode()
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 server.py >port &
trap 'kill %1' EXIT
until [ -s port ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat port)
file=cpu.pb.gz
cp "$FIXTURES/man/cpu.pb.gz" .
"$ASSAY" push "$file" --url "$url" --service shop --label version=1 | sed 's/.*: //'
echo "$(wc -l <requests) requests, $(sort -u requests | wc -l) distinct, $(grep -c "^push-[0-9a-f]\{32\} $(wc -c <"$file") .*version=1" requests) with an id and the file"
: >requests
"$ASSAY" push "$file" --url "$url" --service bad 2>&1 || echo "exit $?"
echo "$(wc -l <requests) request"
