# SPDX-License-Identifier: Apache-2.0
# gRPC's own test client, in Go: its cases for servers without credentials, in clear text and by TLS.
# Its case custom_metadata is left out: it wants trailers of the handler's own, which no service of
# ours sends. $INTEROP_CLIENT is such a client that is built already.
. "$ROOT/tests/server/common.bash"

client=${INTEROP_CLIENT:-}
if [ -z "$client" ]; then
    type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }
    export GOPATH=$PWD/path GOFLAGS=-modcacherw GOTOOLCHAIN=local
    mkdir build
    cd build
    printf 'module interop\n\ngo 1.25\n' >go.mod
    if ! timeout 400 go get google.golang.org/grpc/interop/client@v1.85.0 >get.log 2>&1; then
        tail -n 3 get.log
        echo "gRPC's test client can't be had here: it needs Go 1.26 and modules that can't be downloaded."
        exit 77
    fi
    timeout 900 go build -o client google.golang.org/grpc/interop/client || exit 1
    client=$PWD/client
    cd ..
fi

serve() { # OPTION...: sets $port
    "$HTTP_PEER" --serve interop "$@" <peer.in >peer.out 2>peer.err &
    peer=$!
    servers+=("$peer")
    until [ -s peer.out ]; do
        kill -0 "$peer"
        sleep 0.05
    done
    port=$(sed -n '1s/.*://p' peer.out)
}

cases="empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
    timeout_on_sleeping_server cancel_after_begin cancel_after_first_response
    status_code_and_message special_status_message unimplemented_method unimplemented_service
    rpc_soak channel_soak"
try() { # OPTION...
    for case in $cases; do
        timeout 120 "$client" --server_host=localhost --server_port="$port" --test_case="$case" \
            --soak_iterations=50 --soak_overall_timeout_seconds=100 \
            --soak_per_iteration_max_acceptable_latency_ms=60000 "$@" >"$case.log" 2>&1 || {
            echo "$case ($*):" >&2
            cat "$case.log" peer.err >&2
            exit 1
        }
        echo "$case${*:+ by TLS}"
    done
}

mkfifo peer.in
sleep infinity >peer.in &
servers+=("$!")
serve
try
kill "$peer"
wait "$peer" || true
if type openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem \
        -out certificate.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    : >peer.out
    serve --tls certificate.pem key.pem
    try --use_tls --use_test_ca --ca_file=certificate.pem
fi
