# SPDX-License-Identifier: Apache-2.0
# HTTP/2 and gRPC: profiles and queries over gRPC, gRPC-Web, Connect and plain HTTP are the same;
# status codes, retry information, deadlines, cancellation, tokens. tests/server/h2.py is the client.
. "$ROOT/tests/server/common.bash"

start_server grpc --data store -c keep.yaml --memory-limit 64M --otlp-listen 127.0.0.1:0
otlp=$(sed -n '2s/^assay: serving on http:..//p' grpc.log)
url=$(head -n 1 <<<"$url")
python3 "$ROOT/tests/server/grpc.py" ready "$otlp" "$FIXTURES"
python3 "$ROOT/tests/server/grpc.py" same "${url#http://}" "$FIXTURES"
python3 "$ROOT/tests/server/grpc.py" status "${url#http://}" "$FIXTURES"
if type gcc readelf >/dev/null; then
    printf 'int main(void) { return 0; }\n' >small.c
    gcc -g -Wl,--build-id -o small small.c
    id=$(readelf -n small | sed -n 's/.*Build ID: //p')
    python3 "$ROOT/tests/server/grpc.py" services "${url#http://}" "$FIXTURES" small "$id"
    python3 "$ROOT/tests/server/grpc.py" crowd "${url#http://}" "$FIXTURES" small "$id"
fi

# curl: the same routes over both versions.
if curl --version | grep -qw HTTP2; then
    range="from=1980-01-01&to=$(date -u -d '2 days' +%F)" # "now" is another with each request
    for path in /ready /api/v1/types "/api/v1/flame?query=$cpu&$range" /; do
        curl -sS --http1.1 "$url$path" >one.txt
        curl -sS --http2-prior-knowledge "$url$path" >two.txt
        cmp one.txt two.txt
    done
    status 404 --http2-prior-knowledge "$url/none"
    status 400 --http2-prior-knowledge "$url/api/v1/types?wrong=1"
fi
python3 "$ROOT/tests/server/grpc.py" cancel "${url#http://}" "$FIXTURES" "$pid"
python3 "$ROOT/tests/server/grpc.py" parca "${url#http://}" "$FIXTURES"
get /metrics >metrics.txt
grep -q '^assay_http_requests_total{.*ProfilesService/Export",status="200"} [1-9]' metrics.txt
stop_server

if type gcc readelf nm >/dev/null; then
    printf 'volatile int sink;\n__attribute__((noinline)) int hot(void) { return sink++; }\nint main(void) { return hot() + sink; }\n' >linked.c
    # Its code is not at the address that is its offset in the file.
    gcc -g -no-pie -fno-pie -Wl,--build-id=sha1 -o linked linked.c
    id=$(readelf -n linked | sed -n 's/.*Build ID: //p')
    start_server linked --data linked-store -c keep.yaml
    python3 "$ROOT/tests/server/grpc.py" binary "${url#http://}" "$FIXTURES" linked "$id" \
        "$(nm linked | sed -n 's/ T hot$//p')" "$(nm linked | sed -n 's/ T main$//p')"
    stop_server
    # As Parca's agent strips it: no segments, and code sections without bytes and sizes.
    python3 - <<'PYTHON'
import struct
data = bytearray(open("linked", "rb").read())
table, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
for at in range(table, table + size * count, size):
    kind, flags = struct.unpack_from("<IQ", data, at + 4)
    if kind == 1 and flags & 4:
        struct.pack_into("<I", data, at + 4, 8)
        struct.pack_into("<Q", data, at + 32, 0)
struct.pack_into("<Q", data, 32, 0)
struct.pack_into("<H", data, 56, 0)
open("stripped", "wb").write(data)
PYTHON
    start_server stripped --data stripped-store -c keep.yaml
    python3 "$ROOT/tests/server/grpc.py" binary "${url#http://}" "$FIXTURES" stripped "$id" \
        "$(nm linked | sed -n 's/ T hot$//p')" "$(nm linked | sed -n 's/ T main$//p')"
    stop_server
    # Of an export without names, the same binary on this machine gives them, too.
    mkdir -p "home/.debug/.build-id/${id:0:2}/${id:2}"
    cp linked "home/.debug/.build-id/${id:0:2}/${id:2}/elf"
    for export in unnamed.pb.gz unnamed.otlp; do
        HOME=$PWD/home "$ASSAY" convert --symbolize "$export" -o named.folded
        grep -q '^main;hot 105263156$' named.folded || { cat named.folded >&2; exit 1; }
    done
fi

# The same pushes by HTTP/1.1, gRPC and gRPC-Web make the same store.
for way in http grpc web; do
    start_server "$way" --data "store-$way" -c keep.yaml
    python3 "$ROOT/tests/server/grpc.py" send_all "${url#http://}" "$FIXTURES" "$way" | sed 's| /.* | |' >"$way.codes"
    stop_server
    "$ASSAY" store export "store-$way" "$way.export"
    cmp http.codes "$way.codes"
    cmp http.export "$way.export"
done
[ "$(grep -c ' 0$' http.codes)" -gt 15 ]
[ "$(stat -c %s http.export)" -gt 50000 ]

start_server watch --in-memory -c keep.yaml
python3 "$ROOT/tests/server/grpc.py" watch "${url#http://}" "$FIXTURES" "$pid"
wait "$pid"

# A sender above its rate is told when to try again.
cp keep.yaml rate.yaml
echo 'limits: {requests_per_second: 1}' >>rate.yaml
start_server rate --in-memory -c rate.yaml
python3 "$ROOT/tests/server/grpc.py" retry "${url#http://}" "$FIXTURES"
stop_server

# TLS: by ALPN, beside HTTP/1.1; a client's certificate is asked for as of others.
if type openssl >/dev/null; then
    certificate() { # NAME [options]
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout "$1.key" \
            -out "$1.pem" -subj "/CN=$1" -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "${@:2}" 2>/dev/null
    }
    certificate server
    certificate authority -addext keyUsage=keyCertSign
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout agent.key -out agent.csr \
        -subj /CN=agent 2>/dev/null
    openssl x509 -req -in agent.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
        -out agent.pem 2>/dev/null
    cp keep.yaml tls.yaml
    echo 'tls: {certificate: server.pem, key: server.key}' >>tls.yaml
    start_server tls --in-memory -c tls.yaml
    python3 "$ROOT/tests/server/grpc.py" tls "${url#https://}" "$FIXTURES" server.pem
    stop_server
    cp keep.yaml mutual.yaml
    echo 'tls: {certificate: server.pem, key: server.key, client_ca: authority.pem}' >>mutual.yaml
    start_server mutual --in-memory -c mutual.yaml
    python3 "$ROOT/tests/server/grpc.py" mutual "${url#https://}" "$FIXTURES" server.pem agent.pem agent.key
    stop_server
fi

# gRPC without a server's services around it.
mkfifo peer.in
"$HTTP_PEER" --serve interop <peer.in >peer.out &
servers+=("$!")
exec 9>peer.in
until [ -s peer.out ]; do sleep 0.05; done
python3 "$ROOT/tests/server/grpc.py" interop "$(head -n 1 peer.out)" "$FIXTURES"
exec 9>&-

# Tokens and roles hold for gRPC as for everything else.
"$ASSAY" token create writer --file tokens -r ingest --tenant red >writer.token 2>/dev/null
"$ASSAY" token create reader --file tokens -r read --tenant red >reader.token 2>/dev/null
start_server tokens --in-memory -c keep.yaml --tokens tokens
python3 "$ROOT/tests/server/grpc.py" tokens "${url#http://}" "$FIXTURES" "$(cat writer.token)" "$(cat reader.token)"
stop_server
