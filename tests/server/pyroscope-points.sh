# SPDX-License-Identifier: Apache-2.0
# Values over time as Pyroscope has them: a point covers the step that ends with it. Each request
# is one that profilecli or Pyroscope's own page sends, each answer what Pyroscope gave to it.
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

python3 "$ROOT/tests/server/small_pprof.py" one.pb 1 1794700000
python3 "$ROOT/tests/server/small_pprof.py" two.pb 3 1794700060
start_server memory --in-memory -c keep.yaml
push one.pb 'service=shop&pod=a' >/dev/null
push two.pb 'service=shop&pod=b' >/dev/null

# points START END STEP: times and values, as in "1794700020000=100 1794700080000=300"
points() {
    rpc SelectSeries "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\",
        \"start\":\"$1\",\"end\":\"$2\",\"step\":$3}" |
        jq -r '[.series[].points[] | "\(.timestamp)=\(.value)"] | join(" ")'
}
is() {
    if [ "$1" != "$2" ]; then
        printf 'Got    %s\nWanted %s\n' "$1" "$2" >&2
        return 1
    fi
}
is "$(points 1794699900000 1794700200000 60)" '1794700020000=100 1794700080000=300'
is "$(points 1794699900500 1794700200500 60)" '1794700020500=100 1794700080500=300'
is "$(points 1794699900000 1794700200000 7.5)" '1794700005000=100 1794700065000=300'
# The moment of a point belongs to it, and not to the next one.
is "$(points 1794699900000 1794700200000 100)" '1794700000000=100 1794700100000=300'
is "$(points 1794699899999 1794700200000 100)" '1794700099999=400'
# The first point's step is before the time that was asked for; after the last there is nothing.
is "$(points 1794700030000 1794700070000 60)" '1794700030000=100'
is "$(points 1794700030000 1794700090000 60)" '1794700030000=100 1794700090000=300'
is "$(points 1794700200000 1794700800000 60)" ''
is "$(points 1794700200000 1794700800000 200)" '1794700200000=300'
is "$(points 1000 2000 60)" ''
is "$(points 0 2000000000000 60000000)" '1800000000000=400'
# Steps that rollups have begin with a point's moment, so that these can be used.
is "$(points 1794699600000 1794700200000 600)" '1794700200000=400'

# profilecli's `query top`: one step as long as the window before its ends were cut to milliseconds;
# what is stamped with its start is left out.
top=$(rpc SelectSeries "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{}\",\"start\":\"1794699900000\",
    \"end\":\"1794700200000\",\"step\":300.000000541,\"groupBy\":[\"pod\"]}" |
    jq -c '[.series[] | [.labels[0].value, ([.points[] | select((.timestamp | tonumber) > 1794699900000)
        | .value] | add)]]')
is "$top" '[["b",300],["a",100]]'

# Exemplars are those of the point's step.
rpc SelectSeries "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{}\",\"start\":\"1794699900000\",
    \"end\":\"1794700200000\",\"step\":100,\"exemplarType\":\"EXEMPLAR_TYPE_SPAN\"}" >exemplars.json
json exemplars.json '[(p["timestamp"], p["exemplars"][0]["timestamp"]) for p in d["series"][0]["points"]] ==
    [("1794700000000", "1794700000000"), ("1794700100000", "1794700060000")]'

# /pyroscope/render's timeline: on the clock's grid, of whole steps.
query="query=$cpu%7Bservice_name%3D%22shop%22%7D"
get "/pyroscope/render?$query&from=1794699900&until=1794700200" >render.json
json render.json '(t := d["timeline"])["startTime"] == 1794699900 and t["durationDelta"] == 15 and
    t["samples"] == [100 * (i == 7) + 300 * (i == 11) for i in range(20)] and d["groups"] is None'
get "/pyroscope/render?$query&from=1794699908&until=1794700197" >render.json
json render.json '(t := d["timeline"])["startTime"] == 1794699900 and
    t["samples"] == [100 * (i == 7) + 300 * (i == 11) for i in range(19)]'
get "/pyroscope/render?$query&from=1794699901&until=1794699904" >render.json
json render.json 'd["timeline"]["samples"] == []'
get "/pyroscope/render?$query&from=1794700000&until=1794731200" >render.json # 20.8 s is 20
json render.json '(t := d["timeline"])["durationDelta"] == 20 and len(t["samples"]) == 1560'
get "/pyroscope/render?$query&from=1792000000&until=1794800000" >render.json
json render.json '(t := d["timeline"])["durationDelta"] == 1800 and sum(t["samples"]) == 400'
get "/pyroscope/render?$query&from=1794699900&until=1794700200&groupBy=pod" >render.json
json render.json '{k: (v["startTime"], v["samples"]) for k, v in d["groups"].items()} == {
    "a": (1794699900, [100 * (i == 7) for i in range(20)]),
    "b": (1794699900, [300 * (i == 11) for i in range(20)])} and sum(d["timeline"]["samples"]) == 400'
get "/pyroscope/render?$query&from=1794699900&until=1794700200&groupBy=nothing" >render.json
json render.json 'list(d["groups"]) == ["*"]'

# As a graph of calls, for graphviz.
[[ $(get "/pyroscope/render?$query&from=1794699900&until=1794700200&format=dot") == 'digraph '*main* ]]
[ -z "$(get "/pyroscope/render?$query&from=1794600000&until=1794600200&format=dot")" ]
stop_server
