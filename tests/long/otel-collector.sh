# SPDX-License-Identifier: Apache-2.0
# The OpenTelemetry Collector takes what an agent sends by gRPC, and sends it on by gRPC to one
# server, which starts late, and by HTTP to another. Both have the same, once, as has a server that
# the agent sends to directly. $OTEL_COLLECTOR is a Collector that is built already.
. "$ROOT/tests/server/common.bash"

collector=${OTEL_COLLECTOR:-}
if [ -z "$collector" ]; then
    type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }
    export GOPATH=$PWD/path GOFLAGS=-modcacherw GOTOOLCHAIN=local
    version=v0.159.0
    cat >builder.yaml <<BUILDER
dist: {name: collector, output_path: ./collector}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlpexporter $version
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter $version
providers: [{gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.65.0}]
conf_resolver: {default_uri_scheme: file}
BUILDER
    if ! timeout 1800 go run "go.opentelemetry.io/collector/cmd/builder@$version" \
        --config builder.yaml >build.log 2>&1; then
        tail -n 3 build.log
        echo "The Collector can't be built here: it needs Go 1.26 and modules that can't be downloaded."
        exit 77
    fi
    collector=$PWD/collector/collector
fi

free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
stacks() { # URL SERVICE
    url=$1 get "/api/v1/profile?format=folded&query=$cpu%7Bservice_name%3D%22$2%22%7D&$always"
}
until_same() { # FILE URL SERVICE
    local tries=0
    until stacks "$2" "$3" 2>/dev/null >got.txt && cmp -s "$1" got.txt; do
        if [ $((tries += 1)) -gt 600 ]; then
            diff "$1" got.txt >&2 || true
            tail -n 20 collector.log >&2
            return 1
        fi
        sleep 0.2
    done
}

start_server direct --data direct -c keep.yaml
direct=$url
start_server http --data http -c keep.yaml
http=$url
late=http://127.0.0.1:$(free_port) at=127.0.0.1:$(free_port)
cat >collector.yaml <<YAML
receivers: {otlp: {protocols: {grpc: {endpoint: "$at"}}}}
exporters:
  otlp_grpc: {endpoint: "${late#http://}", tls: {insecure: true}, compression: zstd}
  otlp_http: {endpoint: "$http", compression: gzip}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc, otlp_http]}}
YAML
"$collector" --config file:collector.yaml --feature-gates=service.profilesSupport >collector.log 2>&1 &
servers+=("$!")
until grep -q 'Everything is ready' collector.log; do
    kill -0 "$!"
    sleep 0.1
done

python3 "$ROOT/tests/server/grpc.py" body "" "" app 1000 one.otlp
for target in "$direct" "http://$at"; do
    rm -f input
    mkfifo input
    "$AGENT_FEED" -p -t 60000 -b one.otlp "$target" "spool-${target##*:}" 40 5 <input >feed.out 2>feed.err &
    feed=$!
    servers+=("$feed")
    exec 8>input
    tries=0
    until [ "$(grep -c '^put' feed.out)" -ge 40 ] && [ -z "$(find "spool-${target##*:}" -name '*.batch')" ]; do
        if [ $((tries += 1)) -gt 600 ]; then
            tail -n 5 feed.err >&2
            exit 1
        fi
        sleep 0.2
    done
    exec 8>&-
    wait "$feed"
done
stacks "$direct" app >wanted.txt
grep -qx 'main;work 40000' wanted.txt
until_same wanted.txt "$http" app
# The Collector keeps trying until there is a server.
start_server late --data late -c keep.yaml --listen "${late#http://}"
until_same wanted.txt "$late" app
url=$late get /metrics | grep -q '^assay_http_requests_total{.*ProfilesService/Export",status="200"} [1-9]'
