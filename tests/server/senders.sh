# SPDX-License-Identifier: Apache-2.0
# What other tools' senders send is taken, each under the names and with the values that its own
# server would give it.
. "$ROOT/tests/server/common.bash"

type zstd >/dev/null || { echo "zstd is missing."; exit 77; }
start_server memory --in-memory -c keep.yaml

total() { get "/api/v1/top?query=$1&$always" >top.json; json top.json 'd["total"]'; }
service() { echo "%7Bservice%3D%22$1%22%7D"; }

# Pyroscope's /ingest: the Go SDK's form, raw pprof, folded counts, lines, JFR, speedscope.
base=$FIXTURES/man/base.pb.gz
status 200 -F profile=@"$base" -F 'sample_type_config={}' \
    "$url/ingest?name=goapp%7Benv%3Dprod%7D&spyName=gospy&from=1794716000&until=1794716010"
[ "$(total "cpu$(service goapp)")" = 2130000000 ]
[ "$(get "/api/v1/label/env/values?$always")" = '["prod"]' ]
status 200 --data-binary @"$base" "$url/pyroscope/ingest?name=raw&format=pprof"
[ "$(total "cpu$(service raw)")" = 2130000000 ]
printf 'main;work 3\nmain;rest 2\n' >counts.folded
status 200 --data-binary @counts.folded "$url/ingest?name=counted.cpu&sampleRate=50&from=now-10s"
[ "$(total "cpu$(service counted)")" = 100000000 ]
printf 'main;work\nmain;work\r\nmain;rest\n' >lines.txt
status 200 --data-binary @lines.txt "$url/ingest?name=lined&format=lines&from=now-10s"
[ "$(total "cpu$(service lined)")" = 30000000 ]
status 200 -F jfr=@"$FIXTURES/jfr/async.jfr" "$url/ingest?name=java&format=jfr"
get "/api/v1/series?query=$(service java)&$always" >series.json
json series.json 'len(d) > 0'

# Labels by context beside a recording: context 42 is user=ann. Compressed or not, before or after.
python3 - <<'PYTHON'
import gzip
from protobuf import field
context = field(1, b"\x08\x01\x10\x02")
labels = field(1, b"\x08\x2a" + field(2, context)) + field(2, b"\x08\x01" + field(2, b"user"))
labels += field(2, b"\x08\x02" + field(2, b"ann"))
open("labels.pb", "wb").write(labels)
open("labels.pb.gz", "wb").write(gzip.compress(labels))
open("labels.cut", "wb").write(labels[:-1])
PYTHON
status 200 -F jfr=@"$FIXTURES/jfr/async.jfr" -F labels=@labels.pb "$url/ingest?name=java1&format=jfr"
status 200 -F labels=@labels.pb.gz -F jfr=@"$FIXTURES/jfr/async.jfr" "$url/ingest?name=java2&format=jfr"
status 400 -F jfr=@"$FIXTURES/jfr/async.jfr" -F labels=@labels.cut "$url/ingest?name=java3&format=jfr"
for name in java1 java2; do
    [ "$(get "/api/v1/label/user/values?query=$(service "$name")&$always")" = '["ann"]' ]
    get "/api/v1/series?query=%7Bservice_name%3D%22$name%22%2Cuser%3D%22ann%22%7D&$always" >series.json
    json series.json 'len(d) > 0 and all(s["labels"]["span_name"] == "GET /" for s in d)'
    [ "$(total "cpu$(service java)")" = "$(total "cpu$(service "$name")")" ]
done
[ "$(get "/api/v1/label/service_name/values?query=$(service java3)&$always")" = '[]' ]

"$ASSAY" convert "$base" -t cpu --to speedscope -o base.speedscope.json
status 200 --data-binary @base.speedscope.json "$url/ingest?name=scoped&format=speedscope"
get "/api/v1/series?query=$(service scoped)&$always" >series.json
json series.json 'len(d) == 1'

# push.v1 as JSON and protobuf, plain and gzip; Parca's WriteRaw, which numbers its fields otherwise.
cat >messages.py <<'PYTHON'
import base64, gzip, json, sys
from protobuf import field
def labels(service):
    pairs = {"__name__": "memory", "service_name": service, "otel.scope.name": "s",
             "__delta__": "false"}
    return [field(1, field(1, k) + field(2, v)) for k, v in pairs.items()]
raw = open(sys.argv[1], "rb").read()
open("push.json", "w").write(json.dumps({"series": [{"labels": [
    {"name": "__name__", "value": "memory"}, {"name": "service_name", "value": "json"}],
    "samples": [{"rawProfile": base64.b64encode(raw).decode(), "ID": "x"}]}]}))
def push(service):
    return field(1, b"".join(labels(service)) + field(2, field(1, raw)))
open("push.pb", "wb").write(push("proto"))
open("push.pb.gz", "wb").write(gzip.compress(push("zipped")))
open("parca.pb", "wb").write(field(2, field(1, b"".join(labels("parca"))) + field(2, field(1, raw))))
PYTHON
heap=$FIXTURES/man/heap.pb.gz
python3 messages.py "$heap"
push_url=$url/push.v1.PusherService/Push
status 200 -H 'Content-Type: application/json' --data-binary @push.json "$push_url"
status 200 -H 'Content-Type: application/proto' --data-binary @push.pb "$push_url"
status 200 -H 'Content-Type: application/proto' -H 'Content-Encoding: gzip' \
    --data-binary @push.pb.gz "$push_url"
status 200 -H 'Content-Type: application/proto' --data-binary @parca.pb \
    "$url/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
want=$("$ASSAY" report "$heap" -t inuse_space -f json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["total"])')
for name in json proto zipped parca; do
    [ "$(total "inuse$(service $name)")" = "$want" ]
done
get "/api/v1/types?query=$(service proto)&$always" >types.json
json types.json 'len(d) == 4 and all(t["name"] == "memory" for t in d)'

# OTLP: layouts tell themselves apart; samples times their period are CPU time.
for version in 1.8 1.9 1.10; do
    status 200 -H 'Content-Type: application/x-protobuf' \
        --data-binary @"$FIXTURES/otlp/$version.pb" "$url/v1development/profiles"
done
status 200 -H 'Content-Type: application/json' --data-binary @"$FIXTURES/otlp/1.10.json" \
    "$url/v1development/profiles"
[ "$(cat answer.txt)" = '{}' ]
zstd -q "$FIXTURES/otlp/1.10.pb" -o otlp.zst
status 200 -H 'Content-Type: application/x-protobuf' -H 'Content-Encoding: zstd' \
    --data-binary @otlp.zst "$url/v1development/profiles"
get "/api/v1/series?$always" >series.json
json series.json 'any("service_name" in s["labels"] for s in d)'
json series.json 'not any("service.name" in s["labels"] or "trace_id" in s["labels"] or
    "span_id" in s["labels"] for s in d)'

# Traces and spans are exemplars, not series.
get "/api/v1/types?$always" >types.json
found=0
for id in $(json types.json '" ".join(t["id"] for t in d)'); do
    get "/api/v1/exemplars?query=$id&$always" >exemplars.json
    found=$((found + $(json exemplars.json 'str(len(d["exemplars"]))')))
done
[ "$found" -gt 0 ]
stop_server
