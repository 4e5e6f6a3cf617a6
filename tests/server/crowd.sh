# SPDX-License-Identifier: Apache-2.0
# A crowd of idle, slow and lying clients, over plain connections and TLS: others get their answers.
. "$ROOT/tests/server/common.bash"
crowd=${CROWD:-500}
ulimit -n "$(ulimit -H -n)" 2>/dev/null || true
limit=$(ulimit -n)
if [ "$limit" != unlimited ] && [ "$limit" -lt $((crowd + 1000)) ]; then
    echo "A process may open $limit files only, and a crowd of $crowd needs more."
    exit 77
fi

python3 -c 'for i in range(200000): print(f"main;function_{i % 997};leaf_{i} {i % 100 + 1}")' >large.folded
printf 'limits: {expansion: 20MiB, samples: 300000}\nretention: {raw: 0}\n' >limits.yaml
# With the soft limit that shells usually have: the server raises its own.
(
    ulimit -S -n 1024
    exec "$ASSAY" server --listen 127.0.0.1:0 --data store -c limits.yaml 2>plain.log
) &
pid=$!
servers+=("$pid")
until url=$(sed -n 's/^assay: serving on //p' plain.log) && [ -n "$url" ]; do
    kill -0 "$pid"
    sleep 0.05
done
push large.folded 'service=large&from=now-10s' >/dev/null
python3 "$ROOT/tests/server/crowd.py" "$url" "$crowd" large
get /metrics >metrics.txt
grep -E '^assay_http_connections [0-9]+$' metrics.txt >/dev/null || { grep connections metrics.txt >&2; exit 1; }
stop_server

if [ -n "${CROWD_TLS:-}" ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem \
        -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
    start_server tls --data store -c limits.yaml --tls-cert cert.pem --tls-key key.pem
    CA=cert.pem python3 "$ROOT/tests/server/crowd.py" "$url" 1000 large
    stop_server
fi

# Fewer connections than there are clients: who has many makes room, and a newcomer is answered.
printf 'limits: {connections: 200, idle_timeout: 60s}\nretention: {raw: 0}\n' >few.yaml
start_server few --in-memory -c few.yaml
cat >many.py <<'PYTHON'
import http.client, socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
def dial(source): return socket.create_connection((url.hostname, url.port), 60, (source, 0))
def ready(client):
    client.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = client.recv(1000)
    if not answer.startswith(b"HTTP/1.1 200"):
        sys.exit(f"A quiet client was cut off: {answer!r}")
quiet = [dial("127.0.0.2") for _ in range(5)]
for s in quiet: ready(s) # the server has accepted them before the others come
greedy = []
for _ in range(1000):
    try:
        greedy.append(dial("127.0.0.3"))
    except OSError:
        pass
for s in quiet: ready(s) # they were there first, and are few: still served
for _ in range(20):
    for attempt in range(50):
        try:
            c = http.client.HTTPConnection(url.hostname, url.port, timeout=60, source_address=("127.0.0.4", 0))
            c.request("GET", "/ready")
            if c.getresponse().status == 200: break
        except (OSError, http.client.HTTPException):
            pass
    else:
        sys.exit("A newcomer gets no answer.")
PYTHON
python3 many.py "$url"
get /metrics >metrics.txt
grep -E 'reason="idle"\} [1-9]|reason="connections"\} [1-9]' metrics.txt >/dev/null
stop_server
