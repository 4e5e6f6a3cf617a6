# SPDX-License-Identifier: Apache-2.0
# Prometheus scrapes /metrics: promtool finds nothing to complain about, the target is up, and our
# series are there.
type prometheus promtool >/dev/null 2>&1 || { echo "prometheus is not installed."; exit 77; }
. "$ROOT/tests/server/common.bash"

token=$("$ASSAY" token create scraper --file tokens -r read,ingest 2>/dev/null)
start_server peer --data store -c keep.yaml --tokens tokens
printf 'main;work 3\n' >one.folded
push one.folded 'service=x&from=now-10s' -H "Authorization: Bearer $token" >/dev/null
status 401 "$url/metrics"
status 404 -H "Authorization: Bearer $token" "$url/nothing"
status 200 -H "Authorization: Bearer $token" "$url/metrics"
promtool check metrics <answer.txt

cat >prometheus.yml <<YAML
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: assay
    authorization: {credentials: $token}
    static_configs: [{targets: ["${url#http://}"]}]
YAML
promtool check config prometheus.yml >/dev/null
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file prometheus.yml --storage.tsdb.path tsdb --web.listen-address "127.0.0.1:$port" \
    --log.level warn >prometheus.log 2>&1 &
prometheus=$!
servers+=("$prometheus")
ask() { curl -sS --get --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" 2>/dev/null; }
tries=0
until [[ $(ask 'up{job="assay"} == 1') == *'"1"'* ]]; do
    if ! kill -0 "$prometheus" || [ $((tries += 1)) -gt 300 ]; then
        cat prometheus.log >&2
        exit 1
    fi
    sleep 0.2
done
ask assay_ingest_samples_total >answer.json
json answer.json 'd["data"]["result"][0]["value"][1] == "1"'
ask 'sum(assay_http_requests_total) > 0' >answer.json
json answer.json 'len(d["data"]["result"]) == 1'
ask 'count({job="assay", __name__=~"assay_.+"}) > 20' >answer.json
json answer.json 'len(d["data"]["result"]) == 1'
kill "$prometheus"
wait "$prometheus" || true
stop_server
