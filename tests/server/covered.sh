# SPDX-License-Identifier: Apache-2.0
# Covered time, levels and sources, as people see them: docs/covered-time.md, docs/levels.md.
. "$ROOT/tests/server/common.bash"

start_server covered --data data --config keep.yaml
start=1794700200 # a whole ten minutes
window() { python3 "$ROOT/tests/server/window_pprof.py" window.pb "$@"; }
send() { push window.pb "$1" >/dev/null; }
between() { echo "from=$((start + $1))&to=$((start + $2))"; }
query() { echo "query=$1%7Bservice_name%3D%22$2%22%7D"; }

# The same samples with and without labels take the same time.
window cpu nanoseconds $start 10 'main;a=100000000' 'main;b=100000000' 'main;c=100000000'
send service_name=bare
window cpu nanoseconds $start 10 'main;a=100000000,endpoint=x' 'main;b=100000000,endpoint=y' \
    'main;c=100000000'
send service_name=labelled
get "/api/v1/diff?$(query cpu labelled)&base_$(query cpu bare)&$(between 0 600)" >diff.json
json diff.json 'd["scale"] == 1 and not any(f["flat_change"] or f["cum_change"] for f in d["functions"])'
get "/api/v1/top?$(query cpu labelled)&$(between 0 100)" >top.json
json top.json 'd["quality"]["covered_seconds"] == 10 and d["quality"]["per_seconds"] == 10 and
    d["quality"]["duration_seconds"] == 10 and d["quality"]["windows_covered"] == 0.1'

# A part of a process by a label of its samples is divided by the process's time: x is in one window of
# four, and in none of the next ten minutes.
for at in 0 10 20 30 700; do
    label=$([ $at = 10 ] && echo x || echo y)
    window cpu nanoseconds $((start + at)) 10 "main;a=2000000000,endpoint=$label" 'main;b=1000000000'
    send service_name=parts
done
by_x='query=cpu%7Bservice_name%3D%22parts%22,endpoint%3D%22x%22%7D'
get "/api/v1/top?$by_x&$(between 0 600)" >top.json
json top.json 'd["total"] == 2000000000 and d["quality"]["per_seconds"] == 40'
get "/api/v1/top?$by_x&$(between 0 1200)" >top.json
json top.json 'd["quality"]["per_seconds"] == 50 and d["quality"]["samples"] == 1'
get "/api/v1/timeseries?$by_x&$(between 0 600)&step=600s" >points.json
json points.json 'd["series"][0]["points"][0][1:] == [2000000000, 5e7, 40]'
get "/api/v1/timeseries?$(query cpu parts)&$(between 0 600)&step=600s&group_by=endpoint" >points.json
json points.json '{s["labels"].get("endpoint"): s["points"][0][2] for s in d["series"]} ==
    {None: 1e8, "x": 5e7, "y": 1.5e8} and d["quality"]["per_seconds"] == 40'

# Two seconds in every five of a process that uses 0.036 cores.
for ((at = 0; at < 120; at += 5)); do
    window cpu nanoseconds $((start + at)) 2 'main=72000000'
    send 'service_name=scraped&host=h1'
done
get "/api/v1/timeseries?$(query cpu scraped)&$(between 0 120)&step=60s" >points.json
json points.json 'len(d["series"][0]["points"]) == 2 and
    all(abs(p[2] - 0.036e9) < 1 and p[3] == 24 for p in d["series"][0]["points"]) and
    abs(d["quality"]["windows_covered"] - 0.4) < 1e-9'
"$ASSAY" query timeseries 'cpu{service="scraped"}' --from $start --to $((start + 120)) --step 60s \
    -u "$url" >series.txt
grep -q '0\.036 *24 s' series.txt
# Pyroscope's clients divide a point by the step.
cpu_type=$(json points.json 'd["type"]')
# points SERVICE FROM TO STEP: values of Pyroscope's points
points() {
    rpc SelectSeries "{\"start\":\"$((start + $2))000\",\"end\":\"$((start + $3))000\",\"step\":$4,
        \"profileTypeID\":\"$cpu_type\",\"labelSelector\":\"{service_name=\\\"$1\\\"}\"}" >points.json
}
points scraped 120 120 120
json points.json 'abs(d["series"][0]["points"][0]["value"] / 120 - 0.036e9) < 0.0025e9'
get "/pyroscope/render?query=$cpu_type%7Bservice_name%3D%22scraped%22%7D&from=$((start + 15))&until=$((start + 105))" \
    >render.json
json render.json 'all(abs(v / d["timeline"]["durationDelta"] - 0.036e9) < 0.004e9
    for v in d["timeline"]["samples"][1:-1]) and len(d["timeline"]["samples"]) > 3'

# A heat map counts a push once, whatever its samples' labels are.
for type in "$cpu_type" heap; do
    wanted=300000000
    if [ "$type" = heap ]; then
        window inuse_space bytes $((start + 20)) 0 'main;a=3000,endpoint=x' 'main;b=4000,endpoint=y'
        send service_name=labelled
        get "/api/v1/top?$(query inuse labelled)&$(between 0 100)" >top.json
        type=$(json top.json 'd["type"]') wanted=7000
    fi
    rpc SelectHeatmap "{\"start\":\"$((start - 60))000\",\"end\":\"$((start + 60))000\",\"step\":120,
        \"queryType\":\"HEATMAP_QUERY_TYPE_INDIVIDUAL\",\"profileTypeID\":\"$type\",
        \"labelSelector\":\"{service_name=\\\"labelled\\\"}\"}" >heat.json
    json heat.json "[(sum(s['counts']), s['yMin'][0]) for s in d['series'][0]['slots']] == [(1, $wanted)]"
done

# Growth is growth, whatever share of its own total it is.
window cpu nanoseconds $((start + 600)) 20 'main;a=292000000' 'main;b=292000000' 'main;c=292000000'
send service_name=bare
get "/api/v1/diff?$(query cpu bare)&base_from=$start&base_to=$((start + 600))&$(between 600 1200)" >diff.json
json diff.json 'd["scale"] == 2 and [f["cum_change"] for f in d["functions"] if f["function"] == "main"]
    == [876000000 - 600000000]'

# Two pushes of ten seconds, eleven minutes apart, cover twenty seconds in any step.
for at in 1300 1960; do
    window cpu nanoseconds $((start + at)) 10 'main=5000000000'
    send service_name=rare
done
get "/api/v1/timeseries?$(query cpu rare)&$(between 600 3000)&step=600s" >points.json
json points.json '[(p[2], p[3]) for p in d["series"][0]["points"]] == [(5e8, 10), (5e8, 10)]'
points rare 2400 2400 1800
json points.json '[p["value"] for p in d["series"][0]["points"]] == [10e9]'

# Three hosts, one of which is looked at half of the time.
for host in h1 h2 h3; do
    for ((at = 0; at < 600; at += 60)); do
        [ $host = h3 ] && [ $((at % 120)) = 60 ] && continue
        window cpu nanoseconds $((start + at)) 60 'main=6000000000'
        send "service_name=fleet&host=$host"
    done
done
get "/api/v1/timeseries?$(query cpu fleet)&$(between 0 600)&step=600s" >points.json
json points.json 'abs(d["series"][0]["points"][0][2] - 0.3e9) < 1e5'
points fleet 600 600 600
json points.json 'abs(d["series"][0]["points"][0]["value"] / 600 - 0.3e9) < 0.03e9'

# A level is its average over snapshots, summed over hosts, in every answer.
for level in rss inuse_space; do
kind=${level%%_*}
for ((at = 0; at < 480; at += 60)); do
    window $level bytes $((start + at)) 0 "main;cache=$((110000000 + at % 120 * 100000))" 'main=1000000'
    send 'service_name=heap&host=h1'
    window $level bytes $((start + at)) 0 'main;cache=10000000'
    send 'service_name=heap&host=h2'
done
get "/api/v1/top?$(query $kind heap)&$(between 0 480)" >top.json
json top.json 'd["total"] == 124000000 and d["functions"][0]["flat"] == 123000000'
get "/api/v1/symbols/missing?$(query $kind heap)&$(between 0 480)" >missing.json
json missing.json '[s["total"] for s in d["services"]] == [124000000]'
get "/api/v1/flame?$(query $kind heap)&$(between 0 480)&format=folded" >flame.txt
[ "$(awk '{sum += $NF} END {print sum}' flame.txt)" = 124000000 ]
get "/api/v1/timeseries?$(query $kind heap)&$(between 0 480)&step=240s" >points.json
json points.json '[p[1] for p in d["series"][0]["points"]] == [124000000, 124000000]'
"$ASSAY" query timeseries "$kind{service=\"heap\"}" --from $start --to $((start + 480)) --step 240s \
    -f csv -u "$url" >series.csv # no rate: it holds at a moment
[ "$(cut -d, -f3- series.csv)" = $'value,rate,covered\n124000000,,240 s\n124000000,,240 s' ]
type=$(json top.json 'd["type"]')
range="\"start\":\"${start}000\",\"end\":\"$((start + 480))000\",\"profileTypeID\":\"$type\",
    \"labelSelector\":\"{service_name=\\\"heap\\\"}\""
rpc SelectMergeStacktraces "{$range}" >merged.json
json merged.json 'int(d["flamegraph"]["total"]) == 124000000'
rpc SelectSeries "{$range,\"step\":480}" >series.json
json series.json 'abs(d["series"][0]["points"][-1]["value"] - 124000000) < 1000000'
# Also in steps between two snapshots, as clients draw them.
get "/pyroscope/render?query=$type%7Bservice_name%3D%22heap%22%7D&from=$start&until=$((start + 480))" >render.json
json render.json 'd["timeline"]["durationDelta"] == 15 and
    all(abs(v - 124000000) <= 6000000 for v in d["timeline"]["samples"][:29])'
get "/api/v1/diff?$(query $kind heap)&base_from=$start&base_to=$((start + 240))&$(between 240 480)" >diff.json
json diff.json 'd["scale"] == 1 and not any(f["cum_change"] for f in d["functions"])'
done

# Comparisons average it over steps, of which the sides have different numbers, and over files,
# whatever their durations are.
for normalize in duration none total; do
    get "/api/v1/compare?$(query inuse heap)&base_from=$start&base_to=$((start + 480))&$(between 240 480)&normalize=$normalize" >compare.json
    json compare.json "abs(d['whole']['new'] * d['new']['exposure'] - 124000000) < 1000 and d['new']['seconds'] is None"
    [ $normalize = total ] || json compare.json "d['whole']['base'] == d['whole']['new'] and d['new']['exposure'] == 1"
done
status 400 "$url/api/v1/compare?$(query inuse heap)&base_from=$start&base_to=$((start + 240))&$(between 240 480)&normalize=requests"
json answer.txt '"hold at a moment" in d["message"]'
"$ASSAY" diff -f json -u "$url" --base-query 'inuse{service_name="heap"}' --base-from $start \
    --base-to $((start + 480)) --new-query 'inuse{service_name="heap"}' --new-from $((start + 240)) \
    --new-to $((start + 480)) >diff.json
json diff.json 'd["base_total"] == d["new_total"] == 124000000 and not any(r["cum_change"] for r in d["rows"])'
window inuse_objects count $start 10 'main;cache=100000' && mv window.pb ten.pb
window inuse_objects count $start 20 'main;cache=100000'
for normalize in duration none; do
    "$ASSAY" gate --normalize $normalize -f json -b ten.pb -b ten.pb -n window.pb --max-growth 5% >gate.json
    json gate.json 'd["outcome"] == "passed" and all(c["growth"] == 0 for c in d["checks"])'
    "$ASSAY" gate --normalize $normalize -b window.pb -n ten.pb --max-growth 5% >/dev/null
done

for level in rss inuse_space; do
kind=${level%%_*}
# The last and the greatest value of a level, with the stacks of that moment. Hosts are not looked at in
# the same second.
for ((at = 0; at < 600; at += 30)); do
    window $level bytes $((start + at)) 0 "main;cache=$((at == 300 ? 900000 : at == 570 ? 500000 : 100000))"
    send 'service_name=spiky&host=h1'
    window $level bytes $((start + at + 15)) 0 'main;pool=10000'
    send 'service_name=spiky&host=h2'
done
get "/api/v1/top?$(query $kind spiky)&$(between 0 600)" >top.json
json top.json 'd["total"] == 170000'
get "/api/v1/top?$(query $kind spiky)&$(between 0 600)&agg=last" >top.json
json top.json 'd["total"] == 310000 and d["quality"]["first"] == '$((start + 540))
get "/api/v1/top?$(query $kind spiky)&$(between 0 600)&agg=max" >top.json
json top.json 'd["total"] == 510000 and {f["function"]: f["flat"] for f in d["functions"]}["cache"] == 500000'
get "/api/v1/flame?$(query $kind spiky)&$(between 0 600)&agg=max&format=folded" >flame.txt
[ "$(awk '{sum += $NF} END {print sum}' flame.txt)" = 510000 ]
get "/api/v1/timeseries?$(query $kind spiky)&$(between 0 600)&step=300s&agg=max" >points.json
json points.json '[p[1] for p in d["series"][0]["points"]] == [110000, 510000] and d["step_seconds"] == 300'
get "/api/v1/timeseries?$(query $kind spiky)&$(between 0 600)&step=300s&agg=last" >points.json
json points.json '[p[1] for p in d["series"][0]["points"]] == [110000, 310000]'
get "/api/v1/diff?$(query $kind spiky)&$(between 0 600)&base_from=$start&base_to=$((start + 300))&agg=max" >diff.json
json diff.json '[f["cum_change"] for f in d["functions"] if f["function"] == "main"] == [400000]'
"$ASSAY" query top "$kind{service=\"spiky\"}" --from $start --to $((start + 600)) --agg max -f json -u "$url" >top.json
json top.json 'd["total"] == 510000'
status 400 "$url/api/v1/top?$(query cpu bare)&$(between 0 600)&agg=max"
done

# A service that a profiler of the host and its own SDK report is counted once.
get "/api/v1/profile?$(query cpu bare)&$(between 0 600)&format=otlp" >agent.otlp
curl -sS --fail-with-body -H 'Content-Type: application/x-protobuf' --data-binary @agent.otlp \
    "$url/v1development/profiles" >/dev/null
get "/api/v1/series?query=cpu%7B__source__%3D%22agent%22%7D&$always" >agents.json
name=$(json agents.json 'd[0]["labels"]["service_name"]')
window cpu nanoseconds $start 10 'main;a=100000000' 'main;b=100000000' 'main;c=100000000'
send "service_name=$name"
get "/api/v1/top?query=cpu%7Bservice_name%3D%22$name%22%7D&$always" >top.json
json top.json 'd["total"] == 300000000 and d["quality"]["sources"] ==
    [{"service": "'"$name"'", "source": "agent", "unused": ["push"]}]'
"$ASSAY" query top "cpu{service=\"$name\"}" --from 1980-01-01 --to now+1d -u "$url" >top.txt
grep -Fx "$name: values of agent; push is left out." top.txt
get "/api/v1/symbols/missing?query=cpu%7Bservice_name%3D%22$name%22%7D&$always" >missing.json
json missing.json '[s["total"] for s in d["services"]] == [300000000]'
get "/api/v1/top?query=cpu%7Bservice_name%3D%22$name%22,__source__%3D%22push%22%7D&$always" >top.json
json top.json 'd["total"] == 300000000 and d["quality"]["sources"] == []'

# A fleet of which one half pushes and the other half is sampled by agents is counted whole, and hosts
# that both report are counted once.
agent() { # HOST VALUE
    window cpu nanoseconds $start 10 "main;a=$2,service_name=half,host=$1"
    "$ASSAY" convert window.pb -o agent.otlp --to otlp
    curl -sS --fail-with-body -H 'Content-Type: application/x-protobuf' --data-binary @agent.otlp \
        "$url/v1development/profiles" >/dev/null
}
agent h1 1000000000
agent h2 2000000000
agent h3 4000000000
window cpu nanoseconds $start 10 'main;a=4000000000'
send 'service_name=half&host=h3'
window cpu nanoseconds $start 10 'main;a=8000000000'
send 'service_name=half&host=h4'
get "/api/v1/top?$(query cpu half)&$(between 0 600)" >top.json
json top.json 'd["total"] == 15000000000 and d["quality"]["per_seconds"] == 10 and d["quality"]["sources"] ==
    [{"service": "half", "source": "agent", "by": "host", "others": ["push"], "unused": ["push"]}]'
"$ASSAY" query top 'cpu{service="half"}' --from $start --to $((start + 600)) -u "$url" >top.txt
grep -Fx 'half: by host, values of agent, or else push.' top.txt
get "/api/v1/timeseries?$(query cpu half)&$(between 0 600)&step=600s" >points.json
json points.json 'd["series"][0]["points"][0][1] == 15000000000'
get "/api/v1/timeseries?$(query cpu half)&$(between 0 600)&step=600s&group_by=host" >points.json
json points.json '[s["points"][0][1] for s in d["series"]] == [1000000000, 2000000000, 4000000000, 8000000000]'
get "/api/v1/labels?$always" >labels.json
json labels.json 'not any(name.startswith("__") for name in d)'
stop_server
