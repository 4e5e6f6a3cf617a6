# SPDX-License-Identifier: Apache-2.0
# What can't be taken is refused with a sentence, counted by reason and sender, and harms nothing.
. "$ROOT/tests/server/common.bash"

cat >limits.yaml <<'YAML'
retention: {raw: 14d}
limits: {body: 100KiB, samples: 1000, series: 3}
relabel_configs:
  - {source_labels: [service_name], regex: hidden, action: drop}
YAML
"$ASSAY" server --check-config -c limits.yaml >/dev/null
start_server memory --in-memory -c limits.yaml

said() { grep -- "$1" answer.txt >/dev/null || { cat answer.txt >&2; return 1; }; }
head -c 3000 "$FIXTURES/man/base.pb.gz" >cut.pb.gz
printf 'main 1\n' >one.folded
head -c 200000 /dev/zero >large

status 400 --data-binary @one.folded "$url/api/v1/push"
said 'service_name'
status 415 -d 'garbage' "$url/api/v1/push?service=x"
status 400 --data-binary @cut.pb.gz "$url/api/v1/push?service=x"
status 413 --data-binary @large "$url/api/v1/push?service=x"
status 413 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/push?service=x"
said '3 series'
status 422 --data-binary @one.folded "$url/api/v1/push?service=x&from=2001-01-01"
said 'older'
status 415 --data-binary @one.folded "$url/api/v1/push?service=x&format=nonsense"
status 200 --data-binary @one.folded "$url/api/v1/push?service=hidden&from=now-10s"
status 400 -d x "$url/ingest"
status 400 -d x "$url/ingest?name=a%20b"
status 400 -d x "$url/ingest?name=app&format=trie"
status 415 -d x "$url/ingest?name=app&format=nonsense"
status 400 -F other=x "$url/ingest?name=app"
status 415 -F prev_profile=x "$url/ingest?name=app"
status 400 -H 'Content-Type: multipart/form-data' -d x "$url/ingest?name=app"
status 415 -H 'Content-Type: text/plain' -d x "$url/v1development/profiles"
status 400 -H 'Content-Type: application/x-protobuf' -d 'garbage' "$url/v1development/profiles"
status 400 -H 'Content-Type: application/json' -d '{' "$url/v1development/profiles"
status 400 -H 'Content-Type: application/proto' -d 'garbage' "$url/push.v1.PusherService/Push"
status 400 -H 'Content-Type: application/json' -d '{"series":[{"samples":[{"rawProfile":"*"}]}]}' \
    "$url/push.v1.PusherService/Push"
status 415 -H 'Content-Type: application/grpc' -d x "$url/push.v1.PusherService/Push"

# Questions that can't be.
for question in 'top' 'top?query=cpu%7B' 'top?query=a:b' 'top?query=cpu&from=soon' \
    'top?query=cpu&from=now&to=now-1h' 'flame?query=a:b:c:d:e&format=nonsense' \
    'top?query=a:b:c:d:e&limit=many' 'timeseries?query=a:b:c:d:e&step=often' \
    'top?query=cpu%7Ba%3D~%22(%22%7D' 'diff?query=a:b:c:d:e&normalize=some'; do
    status 400 "$url/api/v1/$question"
    said message
done
status 404 "$url/api/v1/top?query=cpu"
status 404 "$url/nothing"
status 405 -X DELETE "$url/api/v1/top"
rpc_url=$url/querier.v1.QuerierService
status 501 -H 'Content-Type: application/json' -d '{}' "$rpc_url/Nothing"
status 400 -H 'Content-Type: application/json' -d '{"step":' "$rpc_url/SelectSeries"
status 400 -H 'Content-Type: application/json' -d "{\"profileTypeID\":\"$cpu\"}" \
    "$rpc_url/SelectSeries"
status 415 -d '{}' "$rpc_url/ProfileTypes"

# A clock that is an hour fast is corrected, and seen.
push one.folded "service=fast&from=now%2B1h" >/dev/null
get "/api/v1/series?query=%7Bservice%3D%22fast%22%7D&to=now%2B5m" >series.json
json series.json 'len(d) == 1'
push one.folded "service=slow&from=now-2h" -H "X-Assay-Sent-At: $(($(date +%s) - 7200))" >/dev/null
get "/api/v1/series?query=%7Bservice%3D%22slow%22%7D&from=now-5m&to=now%2B5m" >series.json
json series.json 'len(d) == 1'
status 400 -H "X-Assay-Sent-At: half past nine" --data-binary @one.folded \
    "$url/api/v1/push?service=slow"
said "half past nine"

get /api/v1/senders >senders.json
json senders.json 'd[0]["corrected"] == 2 and d[0]["refused"]["too_old"] == 1'
json senders.json 'd[0]["refused"]["malformed"] >= 8 and d[0]["refused"]["unsupported"] >= 5'
json senders.json 'd[0]["refused"]["relabelled"] == 1 and d[0]["refused"]["too_large"] >= 1'
get /metrics >metrics.txt
grep '^assay_ingest_refused_total{reason="too_old"} 1$' metrics.txt >/dev/null
grep '^assay_ingest_clock_corrections_total 2$' metrics.txt >/dev/null
[ "$(get /ready)" = ready ]
get /api/v1/health >health.json
json health.json 'd["status"] == "ok"'
stop_server

# Settings that are wrong are named with their line; serving beyond this machine wants protection.
printf 'listen: 127.0.0.1:0\nlimitz: {}\n' >wrong.yaml
if "$ASSAY" server --check-config -c wrong.yaml 2>error.txt; then exit 1; fi
grep 'wrong.yaml:2: ' error.txt >/dev/null
if "$ASSAY" server --in-memory --listen 0.0.0.0:0 2>error.txt; then exit 1; fi
grep 'set insecure' error.txt >/dev/null

# What is turned away before anybody has looked at it is counted too: by its sender, and no asker's.
printf 'limits: {body: 64KiB, requests_per_second: 1}\n' >limits.yaml
start_server limits --in-memory -c limits.yaml
head -c 100000 /dev/zero >zeros
status 413 --data-binary @zeros "$url/api/v1/push?service=zeros"
refused=0
for _ in $(seq 300); do # a burst of ten is let through
    if [ "$(curl -sS -o answer.txt -w '%{http_code}' -d @one.folded "$url/ingest?name=often")" = 429 ]; then
        refused=$((refused + 1))
        [ "$refused" -lt 3 ] || break
    fi
done
[ "$refused" -eq 3 ]
until [ "$(curl -sS -o senders.json -w '%{http_code}' "$url/api/v1/senders")" = 200 ]; do sleep 0.1; done
json senders.json 'len(d) == 1 and d[0]["refused"] == {"too_large": 1, "rate_limited": 3}'
stop_server
