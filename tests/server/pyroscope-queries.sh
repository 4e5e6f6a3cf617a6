# SPDX-License-Identifier: Apache-2.0
# Pyroscope's query API: the calls of Grafana's data source in its order, and their numbers.
. "$ROOT/tests/server/common.bash"

start_server memory --in-memory -c keep.yaml
push "$FIXTURES/man/base.pb.gz" 'service=shop' >/dev/null

start=1794700000000 end=1794730000000 # around the fixture's time
span="\"start\":\"$start\",\"end\":\"$end\""
select="\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\",$span"

rpc ProfileTypes "{$span}" >types.json
json types.json "'$cpu' in [t['ID'] for t in d['profileTypes']]"
json types.json 'd["profileTypes"][0]["sampleUnit"] == "nanoseconds"'
rpc LabelNames "{\"matchers\":[\"{__profile_type__=\\\"$cpu\\\"}\"],$span}" >names.json
json names.json '{"service_name", "endpoint", "tenant"} <= set(d["names"])'
rpc LabelValues "{\"name\":\"endpoint\",\"matchers\":[\"{}\"],$span}" >values.json
json values.json 'd["names"] == ["/cart", "/page", "/search"]'
rpc Series "{\"labelNames\":[\"service_name\",\"__profile_type__\"],$span}" >series.json
json series.json 'len(d["labelsSet"]) == 2'

rpc SelectSeries "{$select,\"step\":15,\"groupBy\":[\"endpoint\"]}" >points.json
json points.json 'sum(p["value"] for s in d["series"] for p in s["points"]) == 2130000000'
json points.json "all($start <= int(p['timestamp']) <= $end
    for s in d['series'] for p in s['points'])"

# Bars: a level's lie in their parents', selves add up to the total, and names are there.
rpc SelectMergeStacktraces "{$select}" >flame.json
cat >bars.py <<'PYTHON'
import json, sys
g = json.load(open(sys.argv[1]))["flamegraph"]
names, total = g["names"], int(g["total"])
assert names[0] == "total" and total == 2130000000, (names[:1], total)
selves, spans, siblings = 0, [(0, total)], {}
for depth, level in enumerate(g["levels"]):
    v, x, here = [int(n) for n in level["values"]], 0, []
    for i in range(0, len(v), 4):
        x += v[i]
        assert any(a <= x and x + v[i + 1] <= b for a, b in spans), level
        assert 0 < v[i + 1] and v[i + 2] <= v[i + 1] and v[i + 3] < len(names)
        parent = next(n for n, (a, b) in enumerate(spans) if a <= x < b)
        siblings.setdefault((depth, parent), []).append(names[v[i + 3]])
        here.append((x + v[i + 2], x + v[i + 1]))
        x += v[i + 1]
        selves += v[i + 2]
    spans = here
assert selves == total, selves
for row in siblings.values():  # by name, and what was folded last
    assert row == sorted(row, key=lambda name: (name == "other", name)), row
flat = {}
for level in g["levels"]:
    v = [int(n) for n in level["values"]]
    for i in range(0, len(v), 4):
        flat[names[v[i + 3]]] = flat.get(names[v[i + 3]], 0) + v[i + 2]
print(max(flat, key=flat.get), max(flat.values()))
PYTHON
[ "$(python3 bars.py flame.json)" = 'runtime.asyncPreempt 310000000' ]
rpc SelectMergeStacktraces "{$select,\"maxNodes\":\"16\"}" >few.json
python3 bars.py few.json >/dev/null
json few.json 'sum(len(l["values"]) // 4 for l in d["flamegraph"]["levels"]) <= 32 and
    "other" in d["flamegraph"]["names"]'

rpc Diff "{\"left\":{$select},\"right\":{$select}}" >diff.json
json diff.json 'd["flamegraph"]["leftTicks"] == d["flamegraph"]["rightTicks"] == "2130000000" and
    all(len(l["values"]) % 7 == 0 for l in d["flamegraph"]["levels"])'
rpc GetProfileStats '{}' >stats.json
json stats.json 'd["dataIngested"]'

# The same as protobuf; a merged profile is pprof.
cat >ask.py <<'PYTHON'
import sys, urllib.request
from protobuf import field
url, method, type_id, start, end = sys.argv[1:]
body = field(1, type_id) + field(2, '{service_name="shop"}') + field(3, int(start)) + field(4, int(end))
request = urllib.request.Request(f"{url}/querier.v1.QuerierService/{method}", body,
                                 {"Content-Type": "application/proto"})
answer = urllib.request.urlopen(request)
assert answer.headers["Content-Type"] == "application/proto"
sys.stdout.buffer.write(answer.read())
PYTHON
python3 ask.py "$url" SelectMergeProfile "$cpu" $start $end >merged.pb
"$ASSAY" report "$FIXTURES/man/base.pb.gz" -n 0 -t cpu -f csv >want.csv
"$ASSAY" report merged.pb -n 0 -f csv | cmp want.csv -
python3 ask.py "$url" SelectMergeStacktraces "$cpu" $start $end >flame.pb
grep -a 'runtime.asyncPreempt' flame.pb >/dev/null

rpc SelectMergeStacktraces "{$select,\"maxNodes\":\"16\",\"format\":\"PROFILE_FORMAT_TREE\"}" >tree.json
json tree.json '(b"\x05other" in (t := __import__("base64").b64decode(d["tree"]))) and b"(other)" not in t'

render="query=$cpu%7Bservice_name%3D%22shop%22%7D&from=1794700000&until=1794730000"
get "/pyroscope/render?$render" >render.json
json render.json 'd["flamebearer"]["numTicks"] == 2130000000 and d["metadata"]["units"] == "samples"'
json render.json 'sum(d["timeline"]["samples"]) == 2130000000'
side="Query=$cpu%7B%7D"
get "/pyroscope/render-diff?left$side&leftFrom=1794700000&leftUntil=1794730000&right$side&rightFrom=1794700000&rightUntil=1794730000" >diff.json
json diff.json 'd["leftTicks"] == d["rightTicks"] == 2130000000'
[[ $(get '/pyroscope/label-values?label=__name__') == *"$cpu"* ]]
status 400 "$url/pyroscope/label-values?label="
stop_server
