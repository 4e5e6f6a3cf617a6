# SPDX-License-Identifier: Apache-2.0
# Parca as a sender: it scrapes its own profiles and sends them by its own client, over gRPC. $PARCA is
# one that is built: its module can't be had from everywhere.
. "$ROOT/tests/server/common.bash"

parca=${PARCA:-}
[ -n "$parca" ] || { echo "PARCA names no program."; exit 77; }

start_server parca --data data -c keep.yaml
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >scrape.yaml <<YAML
object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./objects}}}
scrape_configs:
  - job_name: scraped-by-parca
    scrape_interval: 3s
    static_configs: [{targets: ['127.0.0.1:$port']}]
YAML
"$parca" --mode=scraper-only --config-path=scrape.yaml --http-address="127.0.0.1:$port" \
    --store-address="${url#http://}" --insecure >sender.log 2>&1 &
sender=$!
servers+=("$sender")
selector='%7Bservice_name%3D%22scraped-by-parca%22%7D'
# Of the memory profile, Go's runtime has a stack in each process.
tries=0
until get "/api/v1/profile?format=folded&query=memory:inuse_space:bytes:space:bytes$selector&$always" >stacks.txt 2>/dev/null &&
    grep -q 'runtime\.main' stacks.txt &&
    get "/api/v1/profile?format=folded&query=$cpu$selector&$always" >cpu.txt 2>/dev/null; do
    if [ $((tries += 1)) -gt 600 ]; then
        tail -n 20 sender.log >&2
        exit 1
    fi
    sleep 0.2
done
kill "$sender"
get /metrics >metrics.txt
grep '^assay_http_requests_total{.*ProfileStoreService/WriteRaw",status="200"} [1-9]' metrics.txt
if grep '^assay_http_requests_total{.*ProfileStoreService/.*status="[45]' metrics.txt; then exit 1; fi
stop_server
