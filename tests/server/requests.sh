# SPDX-License-Identifier: Apache-2.0
# Spans in, and what slow requests do: a chain of two services whose causes are known. See
# requests_fleet.py.
. "$ROOT/tests/server/common.bash"

start=$(($(date +%s) - 300))
python3 "$ROOT/tests/server/requests_fleet.py" fleet "$start"
start_server disk --data data -c keep.yaml

# traces FILE TYPE [curl options]
traces() {
    local file=$1 type=$2
    shift 2
    curl -sS --fail-with-body -H "Content-Type: $type" "$@" --data-binary @"$file" "$url/v1/traces"
}
# ask PATH QUERY: the query is that of requests.
ask() { curl -sSG --fail-with-body --data-urlencode "query=$2" "$url/api/v1/$1"; }

traces fleet/traces.pb application/x-protobuf >answer.pb
[ ! -s answer.pb ]
gzip -k fleet/traces.pb
traces fleet/traces.pb application/x-protobuf >answer.pb # sent again: nothing changes
for file in fleet/profile-*.pb; do
    service=${file#*-}
    push "$file" "service=${service%%-*}" >/dev/null
done

ask requests 'service="shop"' >list.json
json list.json 'd["requests"] == 2000 and d["errors"] == 14 and d["route_count"] == 3'
json list.json 'sorted(r["route"] for r in d["routes"]) == ["/order/{id}", "/report", "/search"]'
json list.json '[r["errors"] for r in d["routes"] if r["route"] == "/search"] == [14]'
json list.json 'sum(s["count"] for s in d["histogram"]) == 2000'
json list.json 'all(s["from"] < s["to"] for s in d["histogram"])'
json list.json 'abs(d["p50"] / 35e6 - 1) < 0.04 and d["max"] == 730000000'
ask 'requests?limit=1' '' >all.json
json all.json 'd["requests"] == 4000 and d["route_count"] == 4 and len(d["routes"]) == 1'
ask 'requests?band=100ms' 'service="shop"' >band.json
json band.json 'd["requests"] == 42'
ask 'requests?band=300ms-500ms' '{service="shop"}' >band.json
json band.json 'd["requests"] == 28'
ask 'requests?band=errors' 'cpu{service=~"sh.*"}' >band.json
json band.json 'd["requests"] == 14 and d["routes"][0]["route"] == "/search"'
ask 'requests?band=p99' 'service="shop"' >band.json
json band.json '14 <= d["requests"] <= 42'
ask requests 'code="500"' >band.json
json band.json 'd["requests"] == 14'
ask requests 'service="none"' >band.json
json band.json 'd["requests"] == 0 and d["routes"] == []'
for band in p0 p101 x 1s-2x -; do
    status 400 -G --data-urlencode "band=$band" "$url/api/v1/requests"
done

# What the slow requests of each route did, in both services, per request.
cat >paths.py <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
f = d["flame"]
names = [f["strings"][n] for n in f["functions"]["name"]]
parents, stacks, values = [0], [()], {}
for i, (up, function) in enumerate(zip(f["nodes"]["up"], f["nodes"]["function"]), 1):
    stacks.append(stacks[i - up] + (names[function],))
for node, value in enumerate(f["self"][0]):
    if value:
        values[";".join(stacks[node])] = value
print(json.dumps({"values": values, **d["evidence"]}))
P
flame() { # ROUTE TYPE BAND
    curl -sSG --fail-with-body --data-urlencode "query=service=\"shop\",route=\"$1\"" \
        "$url/api/v1/requests/flame?type=$2&band=$3" >flame.json
    python3 paths.py flame.json >values.json
}
flame '/order/{id}' wall 100ms
json values.json 'd["values"]["shop;main;serve;take;[lock cart_mutex];[lock]"] == 400000000'
json values.json 'd["values"]["stock;main;serve;check;read_rows;[disk]"] == 5000000'
json values.json 'd["selected"] == {"requests": 14, "with_samples": 14, "samples": 56, "value": 5880000000}'
json values.json 'd["rest"]["requests"] == 653 and d["samples_ambiguous"] == 0'
flame '/search' wall 100ms
json values.json 'd["values"]["stock;main;serve;check;read_rows;[disk]"] == 700000000'
flame '/report' cpu 100ms
json values.json 'd["values"]["shop;main;serve;render;regex_backtrack"] == 290000000'
json values.json 'd["values"]["shop;main;serve;render"] == 300000000'
flame '/report' cpu 0-100ms
json values.json 'd["values"] == {"shop;main;serve;render": 10000000, "stock;main;serve;check": 1000000}'
# One of ten requests has lost the span that its sample names: its trace tells.
json values.json 'd["samples_by_trace"] > 50 and d["samples_without_spans"] == 1'
curl -sSG --fail-with-body --data-urlencode 'query=service="shop"' \
    "$url/api/v1/requests/flame?band=errors&per=total&type=wall" >flame.json
python3 paths.py flame.json >values.json
json values.json 'd["values"]["stock;main;serve;check;read_rows;[disk]"] == 14 * 700000000'
status 400 "$url/api/v1/requests/flame?per=hour"
status 404 -G --data-urlencode 'query=service="shop"' "$url/api/v1/requests/flame?type=inuse"

"$ASSAY" query requests 'service="shop"' -u "$url" >table.txt
grep -E '^ *667 +14 .* shop +GET +/search$' table.txt >/dev/null
"$ASSAY" query requests 'service="shop"' -u "$url" --band errors -f csv >table.csv
[ "$(wc -l <table.csv)" -eq 2 ]

# Spans outlive the server, also when it is killed.
kill -9 "$pid"
wait "$pid" || true
start_server again --data data -c keep.yaml
ask requests 'service="shop"' >again.json
json again.json 'd["requests"] == 2000'

# JSON says the same; what is wrong is refused by number and by reason.
start_server memory --in-memory -c keep.yaml
traces fleet/traces.json application/json >answer.json
json answer.json 'd == {}'
ask requests 'service="shop"' >json.json
json json.json 'd["requests"] == 2000 and d["errors"] == 14'
printf '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00","spanId":"01"}]}]}]}' >bad.json
traces bad.json application/json >answer.json
json answer.json 'd["partialSuccess"]["rejectedSpans"] == 1 and "trace id" in d["partialSuccess"]["errorMessage"]'
python3 "$ROOT/tests/server/requests_fleet.py" old $(($(date +%s) - 10 * 86400))
traces old/traces.json application/json >answer.json
json answer.json 'd["partialSuccess"]["rejectedSpans"] == 7800 and "older" in d["partialSuccess"]["errorMessage"]'
head -c 5000 fleet/traces.pb >cut.pb
status 400 -H 'Content-Type: application/x-protobuf' --data-binary @cut.pb "$url/v1/traces"
status 415 -H 'Content-Type: text/plain' --data-binary @cut.pb "$url/v1/traces"

printf 'spans: {enabled: false}\n' >off.yaml
start_server off --in-memory -c off.yaml
status 415 -H 'Content-Type: application/json' -d '{}' "$url/v1/traces"
