# SPDX-License-Identifier: Apache-2.0
# What Pyroscope's clients expect beside the values themselves: averages, what a profile says of its
# time and period, calls of Grafana's app, and times and ids of what they send.
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }
start_server compat --in-memory -c keep.yaml

is() {
    if [ "$1" != "$2" ]; then
        printf 'Got    %s\nWanted %s\n' "$1" "$2" >&2
        return 1
    fi
}
# call PATH JSON
call() { curl -sS --fail-with-body -H 'Content-Type: application/json' -d "$2" "$url/$1"; }
all='"start":"0","end":"2000000000000"'
average() {
    rpc SelectSeries "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"$1\\\"}\",$all,
        \"step\":60000000,\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}" | jq -c '[.series[].points[].value]'
}

# A profile that its samples' labels have split is one profile all the same.
push "$FIXTURES/pprof/cpu-labels.pb.gz" 'service=split' >/dev/null
is "$(average split)" '[1960000000]'
# Also over a whole slot of ten minutes, which are added up by series.
slot=$(($(date +%s) / 600 * 600 - 1200))
for second in 0 10; do
    python3 "$ROOT/tests/server/window_pprof.py" window.pb cpu nanoseconds $((slot + second)) 10 \
        'main;a=30,endpoint=x' 'main;b=50,endpoint=y'
    push window.pb 'service=slots' >/dev/null
done
for step in 60 600; do
    is "$(rpc SelectSeries "{\"profileTypeID\":\"process_cpu:cpu:nanoseconds::\",\"labelSelector\":\"{service_name=\\\"slots\\\"}\",
        \"start\":\"$((slot + step))000\",\"end\":\"$((slot + 1200))000\",\"step\":$step,
        \"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}" | jq -c '[.series[].points[].value]')" '[80]'
done
python3 "$ROOT/tests/server/small_pprof.py" one.pb 1 1794700000
python3 "$ROOT/tests/server/small_pprof.py" two.pb 3 1794700060
push one.pb 'service=shop&pod=a' >/dev/null
push two.pb 'service=shop&pod=b' >/dev/null
is "$(average shop)" '[200]'
# Profiles of one moment are added up before.
push one.pb 'service=same&pod=a' >/dev/null
push one.pb 'service=same&pod=b' >/dev/null
push two.pb 'service=same&pod=b' >/dev/null
is "$(average same)" '[250]'
for aggregation in sum=400 avg=200; do
    get "/pyroscope/render?query=$cpu%7Bservice_name%3D%22shop%22%7D&from=1794600000&until=1794750000&aggregation=${aggregation%=*}" >render.json
    json render.json "sum(d['timeline']['samples']) == ${aggregation#*=}"
done

# profilecli's output: a period of a second, and the end of the range as its time.
merged=$(rpc SelectMergeProfile "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\",
    \"start\":\"1794699900000\",\"end\":\"1794700200000\"}")
is "$(jq -c '[.period, .timeNanos, .stringTable[.periodType.type | tonumber]]' <<<"$merged")" \
    '["1000000000","1794700200000000000","cpu"]'

# What Grafana's app asks for.
is "$(call version.v1.Version/Version '{}')" '{"QuerierAPI":"1"}'
is "$(call capabilities.v1.FeatureFlagsService/GetFeatureFlags '{}')" '{"featureFlags":[]}'
is "$(curl -sS --fail-with-body -H 'Content-Type: application/proto' --data-binary '' "$url/version.v1.Version/Version" | od -An -tx1)" ' 08 01'
status 501 -H 'Content-Type: application/json' -d '{}' "$url/version.v1.Version/Other"

# Ad hoc profiles.
adhoc=adhocprofiles.v1.AdHocProfileService
is "$(call $adhoc/List '{}')" '{"profiles":[]}'
upload() { call $adhoc/Upload "{\"name\":\"$1\",\"profile\":\"$(base64 -w0 "$1")\"}"; }
upload one.pb >one.json
upload two.pb >two.json
is "$(jq -c '[.name, .profileType, .profileTypes]' one.json)" '["one.pb","cpu",["cpu"]]'
is "$(jq -c '.flamebearerProfile | fromjson | [.flamebearer.numTicks, .metadata.format, .metadata.units]' one.json)" '[100,"single","samples"]'
one=$(jq -r .id one.json) two=$(jq -r .id two.json)
is "$(call $adhoc/List '{}' | jq -c '[.profiles[].name]')" '["two.pb","one.pb"]'
is "$(call $adhoc/Get "{\"id\":\"$two\",\"profileType\":\"cpu\"}" | jq -c '.flamebearerProfile | fromjson | .flamebearer.numTicks')" 300
is "$(call $adhoc/Diff "{\"leftId\":\"$one\",\"rightId\":\"$two\"}" | jq -c '.flamebearerProfile | fromjson | [.metadata.format, .leftTicks, .rightTicks]')" '["double",100,300]'
# The same as protobuf, in and out.
python3 -c 'import sys
from protobuf import field
sys.stdout.buffer.write(field(1, sys.argv[1].encode()))' "$two" >get.bin
curl -sS --fail-with-body -H 'Content-Type: application/proto' --data-binary @get.bin "$url/$adhoc/Get" >got.bin
grep -a '"numTicks":300' got.bin >/dev/null
status 404 -H 'Content-Type: application/json' -d '{"id":"none"}' "$url/$adhoc/Get"
status 400 -H 'Content-Type: application/json' -d "{\"id\":\"$two\",\"profileType\":\"none\"}" "$url/$adhoc/Get"
status 400 -H 'Content-Type: application/json' -d '{"name":"x","profile":"!"}' "$url/$adhoc/Upload"
status 501 -H 'Content-Type: application/json' -d '{}' "$url/$adhoc/Other"

# A recording is of the time that its sender says.
curl -sS --fail-with-body --data-binary @"$FIXTURES/jfr/jdk.jfr" \
    "$url/ingest?name=recorded&format=jfr&from=1794700000&until=1794700010"
get "/api/v1/series?query=%7Bservice%3D%22recorded%22%7D&$always" >series.json
json series.json 'd and all(int(s["first"]) == int(s["last"]) == 1794700000 for s in d)'

# A profile that comes again under its id counts once: in one request, and in the next. Another one
# of the same id but another time is another one.
python3 - "$FIXTURES/otlp/1.10.json" <<'PYTHON'
import copy, json, sys
whole = json.load(open(sys.argv[1]))
def each(document, change):
    for resource in document["resourceProfiles"]:
        for scope in resource["scopeProfiles"]:
            change(scope["profiles"])
def name(profiles):
    for i, profile in enumerate(profiles):
        profile["profileId"] = "%032x" % (i + 1)
each(whole, name)
json.dump(whole, open("named.json", "w"))
twice = copy.deepcopy(whole)
each(twice, lambda profiles: profiles.extend(copy.deepcopy(profiles)))
json.dump(twice, open("twice.json", "w"))
later = copy.deepcopy(whole)
each(later, lambda profiles: [p.update(timeUnixNano=str(int(p["timeUnixNano"]) + 10**10)) for p in profiles])
json.dump(later, open("later.json", "w"))
PYTHON
total() {
    get "/api/v1/types?$always&query=%7Bservice%3D%22shop%22%7D" >/dev/null
    get "/api/v1/top?$always&query=cpu%7Bservice_name%3D%22shop%22%2C__source__%3D~%22.%2B%22%7D" | jq .total
}
otlp() { curl -sS --fail-with-body -H 'Content-Type: application/json' --data-binary @"$1" "$url/v1development/profiles" >/dev/null; }
before=$(total)
otlp twice.json
once=$(($(total) - before))
[ "$once" -gt 0 ]
otlp named.json
otlp named.json
is "$(($(total) - before))" "$once"
otlp later.json
is "$(($(total) - before))" "$((2 * once))"
stop_server
