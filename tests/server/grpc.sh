# SPDX-License-Identifier: Apache-2.0
# HTTP/2 and gRPC: profiles and queries over gRPC, gRPC-Web, Connect and plain HTTP are the same;
# status codes, retry information, deadlines, cancellation, tokens. tests/server/h2.py is the client.
. "$ROOT/tests/server/common.bash"

start_server grpc --data store -c keep.yaml --memory-limit 64M
python3 "$ROOT/tests/server/grpc.py" same "${url#http://}" "$FIXTURES"
python3 "$ROOT/tests/server/grpc.py" status "${url#http://}" "$FIXTURES"
if type gcc readelf >/dev/null; then
    printf 'int main(void) { return 0; }\n' >small.c
    gcc -g -Wl,--build-id -o small small.c
    id=$(readelf -n small | sed -n 's/.*Build ID: //p')
    python3 "$ROOT/tests/server/grpc.py" services "${url#http://}" "$FIXTURES" small "$id"
fi

# curl: the same routes over both versions.
if curl --version | grep -qw HTTP2; then
    for path in /ready /api/v1/types "/api/v1/flame?query=$cpu&$always" /; do
        curl -sS --http1.1 "$url$path" >one.txt
        curl -sS --http2-prior-knowledge "$url$path" >two.txt
        cmp one.txt two.txt
    done
    status 404 --http2-prior-knowledge "$url/none"
    status 400 --http2-prior-knowledge "$url/api/v1/types?wrong=1"
fi
get /metrics >metrics.txt
grep -q '^assay_http_requests_total{.*ProfilesService/Export",status="200"} [1-9]' metrics.txt
stop_server

# Tokens and roles hold for gRPC as for everything else.
"$ASSAY" token create writer --file tokens -r ingest --tenant red >writer.token 2>/dev/null
"$ASSAY" token create reader --file tokens -r read --tenant red >reader.token 2>/dev/null
start_server tokens --in-memory -c keep.yaml --tokens tokens
python3 "$ROOT/tests/server/grpc.py" tokens "${url#http://}" "$FIXTURES" "$(cat writer.token)" "$(cat reader.token)"
stop_server
