# SPDX-License-Identifier: Apache-2.0
# Grafana's data source, call by call in its order, and what profilecli sends: each answer in full
# against a profile whose numbers are known (small_pprof.py).
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

python3 "$ROOT/tests/server/small_pprof.py" one.pb 1 1794700000
python3 "$ROOT/tests/server/small_pprof.py" two.pb 3 1794700060
start_server memory --in-memory -c keep.yaml
push one.pb 'service=shop&pod=a' >/dev/null
push two.pb 'service=shop&pod=b' >/dev/null

# Grafana's proxy speaks Connect: these headers go with each call.
connect() {
    local method=$1 body=$2
    shift 2
    curl -sS --compressed -H 'Connect-Protocol-Version: 1' -H 'Accept-Encoding: gzip' \
        -H 'User-Agent: connect-go/1.18.1 (go1.24)' -H 'Content-Type: application/json' \
        -H 'X-Scope-OrgID: anonymous' "$@" -d "$body" "$url/querier.v1.QuerierService/$method"
}
# same ANSWER WANTED: two JSON documents, whatever the order of their keys.
same() {
    if [ "$(jq -S . <<<"$1")" != "$(jq -S . <<<"$2")" ]; then
        printf 'Got    %s\nWanted %s\n' "$(jq -cS . <<<"$1")" "$(jq -cS . <<<"$2")" >&2
        return 1
    fi
}

start=1794699900000 end=1794700200000
span="\"start\":\"$start\",\"end\":\"$end\""
select="\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\",$span"

# "Save & test": the health check is a list of types.
same "$(connect ProfileTypes "{$span}")" '{"profileTypes":[{"ID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    "name":"process_cpu","sampleType":"cpu","sampleUnit":"nanoseconds","periodType":"cpu",
    "periodUnit":"nanoseconds"}]}'
same "$(connect ProfileTypes '{"start":"1000","end":"2000"}')" '{"profileTypes":[]}'
# Grafana asks without times, too.
[[ $(connect ProfileTypes '{}') == *process_cpu* ]]

# The query editor: label names, then values of one.
names=$(connect LabelNames "{\"matchers\":[\"{__profile_type__=\\\"$cpu\\\"}\"],$span}")
same "$names" '{"names":["__name__","__period_type__","__period_unit__","__profile_type__",
    "__service_name__","__type__","__unit__","pod","service_name"]}'
same "$(connect LabelNames "{\"matchers\":[\"{pod=\\\"x\\\"}\"],$span}")" '{"names":[]}'
same "$(connect LabelValues "{\"name\":\"pod\",\"matchers\":[\"{service_name=\\\"shop\\\"}\"],$span}")" \
    '{"names":["a","b"]}'
same "$(connect LabelValues "{\"name\":\"pod\",\"matchers\":[\"{pod!=\\\"a\\\"}\"],$span}")" '{"names":["b"]}'

# All matchers have to hold.
same "$(connect LabelValues "{\"name\":\"pod\",\"matchers\":[\"{pod=~\\\"a|b\\\"}\",\"{pod!=\\\"a\\\"}\"],$span}")" '{"names":["b"]}'
same "$(connect LabelValues "{\"name\":\"pod\",\"matchers\":[\"{pod=\\\"a\\\"}\",\"{pod=\\\"b\\\"}\"],$span}")" '{"names":[]}'

# A panel: the flame graph and the values over time.
got=$(connect SelectMergeStacktraces "{$select,\"maxNodes\":\"16384\"}")
same "$(jq '.flamegraph | .total, .maxSelf' <<<"$got")" '"400" "200"'
# Bars as {name: [total, self]}, whatever the order in which names are given numbers.
bars=$(jq -c '.flamegraph | .names as $n | [.levels[].values | map(tonumber) | _nwise(4) |
    {key: $n[.[3]], value: .[1:3]}] | from_entries' <<<"$got")
same "$bars" '{"total":[400,0],"main":[400,0],"handle":[200,0],"idle":[200,200],"query":[120,120],
    "render":[80,80]}'
same "$(jq '[.flamegraph.levels[].values | length / 4] | add' <<<"$got")" 6

points=$(connect SelectSeries "{$select,\"step\":60,\"groupBy\":[\"pod\"],\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_SUM\"}")
same "$points" '{"series":[
    {"labels":[{"name":"pod","value":"b"}],"points":[{"value":300,"timestamp":"1794700080000"}]},
    {"labels":[{"name":"pod","value":"a"}],"points":[{"value":100,"timestamp":"1794700020000"}]}]}'
same "$(connect SelectSeries "{$select,\"step\":300,\"groupBy\":[],\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}")" \
    '{"series":[{"labels":[],"points":[{"value":200,"timestamp":"1794700200000"}]}]}'
# Series with the greatest sums are those that a limit leaves.
same "$(connect SelectSeries "{$select,\"step\":60,\"groupBy\":[\"pod\"],\"limit\":\"1\"}" | jq '[.series[].labels[0].value]')" '["b"]'

# Exemplars, the greatest of each point, and then the profile or the span that was clicked.
got=$(connect SelectSeries "{$select,\"step\":60,\"groupBy\":[],\"exemplarType\":\"EXEMPLAR_TYPE_SPAN\"}")
same "$(jq '[.series[0].points[].exemplars[] | [.spanId, .traceId, .value, .profileId]]' <<<"$got")" \
    '[["00000000000000a1","00000000000000000000000000000001","30",""],
      ["00000000000000a1","00000000000000000000000000000001","90",""]]'
got=$(connect SelectSeries "{$select,\"step\":300,\"exemplarType\":\"EXEMPLAR_TYPE_INDIVIDUAL\"}")
profile=$(jq -r '.series[0].points[0].exemplars[0].profileId' <<<"$got")
same "$(jq '.series[0].points[0].exemplars | [.[] | [.value, .timestamp, .spanId, (.labels | length)]]' <<<"$got")" \
    '[["300","1794700060000","",2]]'
[[ $profile =~ ^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$ ]]
other=$(tr 0-9a-f f0-9a-e <<<"$profile")
total() { jq -r '.flamegraph.total'; }
[ "$(connect SelectMergeStacktraces "{$select,\"profileIdSelector\":[\"$profile\"]}" | total)" = 300 ]
[ "$(connect SelectMergeStacktraces "{$select,\"profileIdSelector\":[\"$other\"]}" | total)" = 0 ]
[ "$(connect SelectMergeSpanProfile "{$select,\"spanSelector\":[\"00000000000000a2\"]}" | total)" = 80 ]
[ "$(connect SelectMergeStacktraces "{$select,\"spanSelector\":[\"00000000000000a1\",\"00000000000000a2\"]}" | total)" = 200 ]
[ "$(connect SelectMergeStacktraces "{$select,\"traceIdSelector\":[\"00000000000000000000000000000001\"]}" | total)" = 200 ]
[ "$(connect SelectMergeStacktraces "{$select,\"traceIdSelector\":[\"00000000000000000000000000000002\"]}" | total)" = 0 ]
[[ $(connect SelectMergeStacktraces "{$select,\"spanSelector\":[\"a1\"]}") == *invalid_argument*"not a span id"* ]]
[ "$(connect SelectMergeStacktraces "{$select,\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"},{\"name\":\"handle\"}]}}" | total)" = 200 ]

# Heat maps: each push, or each sample of a span, is a point.
got=$(connect SelectHeatmap "{$select,\"step\":300,\"queryType\":\"HEATMAP_QUERY_TYPE_INDIVIDUAL\",\"exemplarType\":\"EXEMPLAR_TYPE_INDIVIDUAL\"}")
same "$(jq '[.series[0].slots[0].exemplars[] | .value]' <<<"$got")" '["100","300"]'
same "$(jq '.series[0].slots[0].exemplars[1].profileId' <<<"$got")" "\"$profile\""
got=$(connect SelectHeatmap "{$select,\"step\":60,\"queryType\":\"HEATMAP_QUERY_TYPE_INDIVIDUAL\"}")
same "$(jq '[.series[0].slots[] | [.timestamp, (.counts | add), .counts[0], .counts[19], .yMin[0]]]' <<<"$got")" \
    '[["1794700020000",1,1,0,100],["1794700080000",1,0,1,100]]'
got=$(connect SelectHeatmap "{$select,\"step\":60,\"queryType\":\"HEATMAP_QUERY_TYPE_SPAN\",\"exemplarType\":\"EXEMPLAR_TYPE_SPAN\",\"groupBy\":[\"pod\"]}")
same "$(jq '[.series[] | [.labels[0].value, (.slots[0].counts | add), (.slots[0].exemplars | length)]] | sort' <<<"$got")" \
    '[["a",2,2],["b",2,2]]'

# The busiest of more series than are asked for.
push one.pb 'service=heat&zone=a' >/dev/null
push one.pb 'service=heat&zone=b' >/dev/null
push two.pb 'service=heat&zone=b' >/dev/null
got=$(connect SelectHeatmap "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"heat\\\"}\",$span,\"step\":60,\"queryType\":\"HEATMAP_QUERY_TYPE_INDIVIDUAL\",\"groupBy\":[\"zone\"],\"limit\":\"1\"}")
same "$(jq '[.series[] | [.labels[0].value, ([.slots[].counts[]] | add)]]' <<<"$got")" '[["b",2]]'

# Other forms of the merged profile.
connect SelectMergeStacktraces "{$select,\"format\":\"PROFILE_FORMAT_TREE\"}" | jq -r .tree | base64 -d >tree.bin
cat >tree.py <<'PYTHON'
import sys
data, at = open(sys.argv[1], "rb").read(), 0
def varint():
    global at
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128: return value
def node(path, out):
    global at
    length = varint()
    name = data[at:at + length].decode()
    at += length
    path = path + [name] if name else path
    value, children = varint(), varint()
    if value: out[";".join(path)] = value
    for _ in range(children): node(path, out)
    return out
found = node([], {})
assert at == len(data)
print(*sorted(f"{k} {v}" for k, v in found.items()), sep="\n")
PYTHON
folded=$'main;handle;query 120\nmain;handle;render 80\nmain;idle 200'
[ "$(python3 tree.py tree.bin)" = "$folded" ]
dot=$(connect SelectMergeStacktraces "{$select,\"format\":\"PROFILE_FORMAT_DOT\"}" | jq -r .dot)
[[ $dot == 'digraph "profile" {'* && $dot == *'main\n0 of 400ns"]'* && $dot == *'N1 -> '*'[label="200ns"]'* ]]
# pprof as JSON says the same as pprof as protobuf.
got=$(connect SelectMergeStacktraces "{$select,\"format\":\"PROFILE_FORMAT_PPROF\"}" | jq .pprof.profile)
same "$(jq '[.sample[].value[] | tonumber] | add' <<<"$got")" 400
same "$(jq '.stringTable as $s | .sampleType[0] | [$s[.type | tonumber], $s[.unit | tonumber]]' <<<"$got")" \
    '["cpu","nanoseconds"]'
same "$(jq '.durationNanos // "0"' <<<"$got")" '"0"'
same "$(jq -c 'del(.timeNanos)' <<<"$got")" "$(connect SelectMergeProfile "{$select}" | jq -c 'del(.timeNanos)')"
connect SelectMergeProfile "{$select,\"traceIdSelector\":[\"00000000000000000000000000000001\"]}" |
    jq -e '[.sample[].value[] | tonumber] | add == 200' >/dev/null

# Profiles Drilldown: a comma before filters that are none, and names of OpenTelemetry without quotes.
# It warns in each view unless its settings are answered with.
push one.pb 'service=hosts&host.name=h1&app-id=7' >/dev/null
drill="\"profileTypeID\":\"$cpu\",$span"
for filter in 'service_name=\"hosts\",' 'service_name=\"hosts\",host.name=\"h1\"' \
    'service_name=\"hosts\",host.name=~\"h.\",app-id!=\"8\"'; do
    [ "$(connect SelectMergeStacktraces "{$drill,\"labelSelector\":\"{$filter}\"}" | total)" = 100 ]
done
[ "$(connect SelectMergeStacktraces "{$drill,\"labelSelector\":\"{host.name=\\\"h2\\\"}\"}" | total)" = 0 ]
# Its tables and sandwiches are newer than what is served: after 501 it makes them of the flame graph,
# after another error the table is empty. Newer values of others are as if they weren't there.
for format in '"PROFILE_FORMAT_FUNCTIONS"' '"PROFILE_FORMAT_FUNCTION_TREE"' 9; do
    status 501 -H 'Content-Type: application/json' "$url/querier.v1.QuerierService/SelectMergeStacktraces" \
        -d "{$select,\"format\":$format,\"sandwichFunction\":\"main\",\"maxNodes\":null}"
    json answer.txt 'd["code"] == "unimplemented" and "FLAMEGRAPH" in d["message"]'
done
same "$(connect SelectSeries "{$select,\"step\":300,\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_MEDIAN\",\"exemplarType\":\"EXEMPLAR_TYPE_OTHER\"}" |
    jq '[.series[].points[] | [.value, .exemplars]]')" '[[400,null]]'
settings() {
    curl -sS --fail-with-body -H "Content-Type: $1" --data-binary "$2" "$url/settings.v1.SettingsService/Get"
}
same "$(settings application/json '{}')" '{"settings":[]}'
[ -z "$(settings application/proto '')" ]
status 501 -H 'Content-Type: application/json' -d '{}' "$url/settings.v1.SettingsService/Set"

# Parts of stacks: below a call site nothing else is there; Go's optimiser wants innermost calls.
folded() { # of a pprof in JSON: names from the root, ":" and the line where there is one
    jq -r '.stringTable as $s | (.function | INDEX(.id)) as $f | (.location | INDEX(.id)) as $l |
        [.sample[] | ([.locationId | reverse | .[] | $l[.].line[0] |
            $s[$f[.functionId].name | tonumber] + (if (.line // "0") == "0" then "" else ":" + .line end)]
            | join(";")) + " " + .value[0]] | sort | join(",")'
}
site='"stackTraceSelector":{"callSite":[{"name":"main"},{"name":"handle"}]}'
same "\"$(connect SelectMergeProfile "{$select,$site}" | folded)\"" '"main;handle;query 120,main;handle;render 80"'
pgo='"stackTraceSelector":{"goPgo":{"keepLocations":2,"aggregateCallees":true}}'
same "\"$(connect SelectMergeProfile "{$select,$pgo}" | folded)\"" '"handle;query 120,handle;render 80,main;idle 200"'
pgo='"stackTraceSelector":{"callSite":[{"name":"main"},{"name":"handle"}],"goPgo":{"keepLocations":1}}'
same "\"$(connect SelectMergeProfile "{$select,$pgo}" | folded)\"" '"query 120,render 80"'
python3 - lines.pb <<'PYTHON'
import sys
from protobuf import field, varint
strings = ["", "cpu", "nanoseconds", "main", "work"]
def location(number, function, line): # a line of a function
    return field(4, field(1, number) + field(4, field(1, function) + field(2, line)))
body = field(1, field(1, 1) + field(2, 2))
body += b"".join(field(2, field(1, varint(leaf) + varint(root)) + field(2, varint(value)))
                 for leaf, root, value in [(2, 1, 7), (3, 1, 5)])
body += location(1, 1, 10) + location(2, 2, 20) + location(3, 2, 21)
body += b"".join(field(5, field(1, n) + field(2, n + 2)) for n in (1, 2))
body += b"".join(field(6, s) for s in strings) + field(9, 1794700000 * 10**9) + field(10, 10**10)
open(sys.argv[1], "wb").write(body + field(11, field(1, 1) + field(2, 2)) + field(12, 10))
PYTHON
push lines.pb 'service=lines' >/dev/null
lines="\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"lines\\\"}\",$span"
same "\"$(connect SelectMergeProfile "{$lines}" | folded)\"" '"main:10;work:20 7,main:10;work:21 5"'
pgo='"stackTraceSelector":{"goPgo":{"aggregateCallees":true}}'
same "\"$(connect SelectMergeProfile "{$lines,$pgo}" | folded)\"" '"main:10;work 12"'
status 400 -H 'Content-Type: application/json' -d "{$lines,\"stackTraceSelector\":{\"goPgo\":{\"aggregateCallees\":7}}}" \
    "$url/querier.v1.QuerierService/SelectMergeProfile"

# What there is, and what a query would read.
same "$(connect GetProfileStats '{}')" '{"dataIngested":true,"oldestProfileTime":"1794700000000",
    "newestProfileTime":"1794700060000"}'
got=$(connect AnalyzeQuery "{\"query\":\"$cpu{service_name=\\\"shop\\\"}\",$span}")
same "$(jq '.queryScopes[0] | [.seriesCount, .profileCount, .sampleCount]' <<<"$got")" '["2","2","6"]'
same "$(connect Series "{\"matchers\":[\"{pod=\\\"b\\\"}\"],\"labelNames\":[\"service_name\",\"pod\"],$span}")" \
    '{"labelsSet":[{"labels":[{"name":"pod","value":"b"},{"name":"service_name","value":"shop"}]}]}'

# Errors are Connect's; gzip goes both ways; a probe for tenants sees none.
status 400 -H 'Content-Type: application/json' -d "{$select,\"step\":0}" \
    "$url/querier.v1.QuerierService/SelectSeries"
json answer.txt 'd["code"] == "invalid_argument" and "step" in d["message"]'
status 400 -H 'Content-Type: application/json' -d '{"labelSelector":"{"}' \
    "$url/querier.v1.QuerierService/SelectMergeStacktraces"
status 400 -H 'Content-Type: application/json' -d '{' "$url/querier.v1.QuerierService/LabelNames"
status 501 -H 'Content-Type: application/json' -d '{}' "$url/querier.v1.QuerierService/Nothing"
json answer.txt 'd["code"] == "unimplemented"'
status 415 -H 'Content-Type: application/grpc' -d '' "$url/querier.v1.QuerierService/LabelNames"
status 200 -H 'X-Scope-OrgID;' -H 'Content-Type: application/json' -d '{}' \
    "$url/querier.v1.QuerierService/LabelNames"
printf '%s' "{$select}" | gzip >body.gz
curl -sS -H 'Content-Type: application/json' -H 'Content-Encoding: gzip' --data-binary @body.gz \
    "$url/querier.v1.QuerierService/SelectMergeStacktraces" >got.json
json got.json 'd["flamegraph"]["total"] == "400"'

# The same as protobuf, which is what the data source sends: written and read field by field.
python3 "$ROOT/tests/server/connect_proto.py" "$url" "$cpu" $start $end

# What profilecli sends: `upload` is a push, `query series` a Series, `query merge` a SelectMergeProfile.
python3 - one.pb <<'PYTHON' >push.json
import base64, json, sys
raw = base64.b64encode(open(sys.argv[1], "rb").read()).decode()
labels = {"__name__": "process_cpu", "service_name": "cli"}
print(json.dumps({"series": [{"labels": [{"name": k, "value": v} for k, v in labels.items()],
                              "samples": [{"rawProfile": raw}]}]}))
PYTHON
curl -sS --fail-with-body -H 'User-Agent: pyroscope/profilecli-1.16' -H 'Content-Type: application/json' \
    -d @push.json "$url/push.v1.PusherService/Push"
[ "$(connect SelectMergeStacktraces "{$span,\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"cli\\\"}\"}" | total)" = 100 ]
curl -sS --fail-with-body "$url/ready" >/dev/null
stop_server

# With tokens the tenant is the token's: whoever names another gets nothing rather than that.
token=$("$ASSAY" token create grafana --file tokens --tenant blue -r read 2>/dev/null)
start_server tokens --in-memory -c keep.yaml --tokens tokens
blue() { # STATUS [curl options]
    local wanted=$1
    shift
    status "$wanted" -H 'Content-Type: application/json' -d '{}' "$@" \
        "$url/querier.v1.QuerierService/LabelNames"
}
blue 401
json answer.txt 'd["code"] == "unauthenticated"'
bearer="Authorization: Bearer $token"
blue 200 -H "$bearer"
blue 200 -H "$bearer" -H 'X-Scope-OrgID: blue'
blue 200 -H "$bearer" -H 'X-Scope-OrgID;'
blue 403 -H "$bearer" -H 'X-Scope-OrgID: red'
json answer.txt 'd["code"] == "permission_denied" and "tenant blue" in d["message"]'
stop_server
