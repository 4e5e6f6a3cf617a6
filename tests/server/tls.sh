# SPDX-License-Identifier: Apache-2.0
# The server with TLS: a certificate that is exchanged while it serves, ones that can't be, client
# certificates, handshakes that never end, CORS; what systemd is told; serving as nobody.
. "$ROOT/tests/server/common.bash"
type openssl >/dev/null || { echo "openssl is missing."; exit 77; }

certificate() { # NAME SUBJECT [options]
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout "$1.key" \
        -out "$1.pem" -subj "/CN=$2" -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "${@:3}" 2>/dev/null
}
certificate first first.example
certificate second second.example
certificate authority authority -addext keyUsage=keyCertSign
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout agent.key -out agent.csr \
    -subj /CN=agent 2>/dev/null
openssl x509 -req -in agent.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
    -out agent.pem 2>/dev/null
cp first.pem now.pem
cp first.key now.key

# refused OPTIONS...: doesn't start, and says why in a line that holds $said.
refused() {
    if timeout 60 "$ASSAY" server --listen 127.0.0.1:0 --in-memory "$@" 2>refused.log; then return 1; fi
    grep "^assay: .*$said.*\.$" refused.log >/dev/null || { cat refused.log >&2; return 1; }
}
said='no PEM certificate' refused --tls-cert first.key --tls-key first.key
said="doesn't match the certificate" refused --tls-cert first.pem --tls-key second.key
said='missing.pem' refused --tls-cert missing.pem --tls-key first.key
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout old.key -out old.pem \
    -subj /CN=old -not_before 20200101000000Z -not_after 20200102000000Z 2>/dev/null ||
    openssl x509 -req -in agent.csr -signkey agent.key -days -1 -out old.pem 2>/dev/null || : >old.pem
[ -s old.key ] || cp agent.key old.key
if [ -s old.pem ]; then said='has expired' refused --tls-cert old.pem --tls-key old.key; fi

# Beyond this machine: TLS and tokens, both, or --insecure.
"$ASSAY" token create reader --file tokens -r read,ingest >reader.token 2>/dev/null
for options in '' '--tls-cert now.pem --tls-key now.key' '--tokens tokens'; do
    # shellcheck disable=SC2086
    if timeout 60 "$ASSAY" server --listen 0.0.0.0:0 --in-memory $options 2>refused.log; then exit 1; fi
    grep insecure refused.log >/dev/null
done
start_server open --in-memory --listen 0.0.0.0:0 --insecure
curl -sS --fail "http://127.0.0.1:${url##*:}/ready" >/dev/null
stop_server

cat >tls.yaml <<'YAML'
tls: {certificate: now.pem, key: now.key}
cors_origin: https://dash.example
retention: {raw: 0}
limits: {idle_timeout: 2s}
YAML
start_server tls --data store -c tls.yaml --tokens tokens --listen 0.0.0.0:0
port=${url##*:}
bearer="Authorization: Bearer $(cat reader.token)"
ask() { curl -sS --fail-with-body --cacert "$1.pem" -H "$bearer" "${@:3}" "https://localhost:$port$2"; }
printf 'main;tls 3\n' >one.folded
[ "$(ask first /ready)" = ready ]
ask first '/api/v1/push?service=x&from=now-10s' --data-binary @one.folded >/dev/null
if curl -sS "https://localhost:$port/ready" 2>/dev/null; then exit 1; fi # who doesn't know it
if ask second /ready 2>/dev/null; then exit 1; fi

# Handshakes that never end hold nobody up, and end.
python3 - "$port" <<'PYTHON' &
import socket, sys
all = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) for _ in range(200)]
for i, s in enumerate(all):
    if i % 2: s.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
for s in all: # the server closes each
    try:
        while s.recv(1000): pass
    except ConnectionError: pass
PYTHON
handshakes=$!
for _ in 1 2 3 4 5; do ask first /ready >/dev/null; done
wait "$handshakes"

# A key that doesn't fit changes nothing; a pair that does is used at once.
cp second.key now.key
kill -HUP "$pid"
until grep "doesn't match the certificate" tls.log >/dev/null; do sleep 0.05; done
ask first /ready >/dev/null
cp second.pem now.pem
kill -HUP "$pid"
until grep 'Reloaded label rules' tls.log >/dev/null; do sleep 0.05; done
ask second /ready >/dev/null
if ask first /ready 2>/dev/null; then exit 1; fi

# CORS: the one origin, with its preflight, and no other.
ask second /api/v1/types -H 'Origin: https://dash.example' -D head.txt >/dev/null
grep -i '^access-control-allow-origin: https://dash.example' head.txt >/dev/null
status 204 --cacert second.pem -X OPTIONS -D head.txt -H 'Origin: https://dash.example' \
    -H 'Access-Control-Request-Method: GET' "https://localhost:$port/api/v1/types"
grep -i '^access-control-allow-methods: GET' head.txt >/dev/null
ask second /api/v1/types -H 'Origin: https://evil.example' -D head.txt >/dev/null
grep -i '^access-control-allow-origin: https://evil' head.txt && exit 1
stop_server

# Client certificates.
printf 'tls: {certificate: first.pem, key: first.key, client_ca: authority.pem}\n' >mutual.yaml
start_server mutual --in-memory -c mutual.yaml
port=${url##*:}
status 401 --cacert first.pem "https://localhost:$port/api/v1/types"
status 200 --cacert first.pem --cert agent.pem --key agent.key "https://localhost:$port/api/v1/types"
status 401 --cacert first.pem --cert second.pem --key second.key "https://localhost:$port/api/v1/types"
stop_server

# systemd: ready, reloading with a time, signs of life, stopping.
python3 - >told.txt <<'PYTHON' &
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
s.settimeout(100)
text = ""
while text != "STOPPING=1":
    text = s.recv(200).decode()
    print(text.replace("\n", " "), flush=True)
PYTHON
listener=$!
until [ -S notify ]; do sleep 0.05; done
NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=200000 start_server told --in-memory -c keep.yaml
until [ "$(grep -c WATCHDOG=1 told.txt)" -ge 3 ]; do sleep 0.05; done
kill -HUP "$pid"
until grep '^RELOADING=1 MONOTONIC_USEC=[0-9]' told.txt >/dev/null; do sleep 0.05; done
stop_server
wait "$listener"
[ "$(grep -v WATCHDOG told.txt | sed 's/ .*//' | paste -sd' ')" = 'READY=1 RELOADING=1 READY=1 STOPPING=1' ]

# No privilege is needed.
if [ "$(id -u)" = 0 ] && type setpriv >/dev/null; then
    mkdir -m 777 public
    chmod a+x . .. 2>/dev/null || true
    if setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$ASSAY" -a -w public; then
        cp keep.yaml public
        as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all)
        "${as_nobody[@]}" "$ASSAY" server --listen 127.0.0.1:0 --data public/store \
            -c public/keep.yaml 2>nobody.log &
        pid=$!
        servers+=("$pid")
        until url=$(sed -n 's/^assay: serving on //p' nobody.log) && [ -n "$url" ]; do
            kill -0 "$pid"
            sleep 0.05
        done
        push one.folded 'service=x&from=now-10s' >/dev/null
        [ "$(stat -c %u public/store)" = 65534 ]
        stop_server
    fi
fi
