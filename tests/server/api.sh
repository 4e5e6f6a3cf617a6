# SPDX-License-Identifier: Apache-2.0
# The API's edges: forms of times and their errors, spans, what is said of how good an answer is,
# questions that are too large or that nobody waits for, and what browsers ask.
. "$ROOT/tests/server/common.bash"

printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\ncors_origin: https://ui.example\nlimits: {query_memory: 10M}\n' >api.yaml
python3 "$ROOT/tests/server/small_pprof.py" one.pb 1 1794700000
python3 "$ROOT/tests/server/small_pprof.py" two.pb 3 1794700060
start_server memory --in-memory -c api.yaml
push one.pb 'service=shop&host=h1&pod=a' >/dev/null
push two.pb 'service=shop&host=h2&pod=b' >/dev/null

# Times: each of these is the same second.
for time in 1794700060 1794700060.000 1794700060000 1794700060000000 1794700060000000000 \
    2026-11-14T23:47:40Z 2026-11-14T23:47:40.000Z 2026-11-15T00:47:40%2B01:00; do
    get "/api/v1/top?query=cpu&from=1794700000&to=$time" >top.json
    json top.json 'd["total"] == 100' || { echo "$time" >&2; exit 1; }
    get "/api/v1/top?query=cpu&from=$time&to=now%2B1d" >top.json
    json top.json 'd["total"] == 300' || { echo "$time" >&2; exit 1; }
done
for time in yesterday -5 now-1x 2026-02-31 2026-11-14T25:00 nan 1e400 99999999999999999999; do
    status 400 "$url/api/v1/top?query=cpu&from=$time"
    json answer.txt 'd["code"] == "invalid_argument" and "is not a time; use unix seconds" in d["message"]'
done
status 400 "$url/api/v1/top?query=cpu&from=now&to=now-1h"
json answer.txt 'd["message"] == "The time range ends before it begins."'
status 404 "$url/api/v1/top?query=cpu&from=now-1m"
status 404 "$url/api/v1/top?query=wall&$always"
json answer.txt '"available: process_cpu:cpu:nanoseconds:cpu:nanoseconds" in d["message"]'
# A type is anybody's text, also where a part of it is a unit: every answer about it is JSON.
for path in top 'callers&function=x' 'lines&function=x' timeseries exemplars diff; do
    for type in 'a:b:c%5C:d:e' 'a:b%22:c%22:d:e'; do
        curl -sS "$url/api/v1/${path%%&*}?query=$type&$always${path#"${path%%&*}"}" >odd.json
        jq -e . odd.json >/dev/null || { echo "$path of $type is not JSON:"; cat odd.json; exit 1; }
    done
done
for type in 'a:b:c%5C:d:e' 'a:b%22:c%22:d:e'; do
    curl -sS "$url/pyroscope/render?query=$type&$always" >odd.json
    jq -e . odd.json >/dev/null || { echo "render of $type is not JSON:"; cat odd.json; exit 1; }
done
status 400 "$url/api/v1/top?$always"
status 400 "$url/api/v1/top?query=a:b&$always"

# Several types that a short name could stand for are listed.
push one.pb 'service=other&name=elsewhere' >/dev/null
push one.pb 'service=other&name=nowhere' >/dev/null
status 400 "$url/api/v1/top?query=cpu%7Bservice%3D%22other%22%7D&$always"
json answer.txt '"matches 2 types here" in d["message"] and "elsewhere:cpu" in d["message"] and
    "nowhere:cpu" in d["message"]'
shop='query=cpu%7Bservice%3D%22shop%22%7D'

# How good it is: hosts, what part of the time, and losses that somebody counted.
get "/api/v1/top?$shop&from=1794700000&to=1794700100" >top.json
json top.json 'd["quality"]["hosts"] == 2 and d["quality"]["windows_covered"] == 0.2 and
    d["quality"]["covered_seconds"] == 20 and d["quality"]["dropped"] is None and
    d["quality"]["unnamed_share"] == 0 and d["quality"]["duration_seconds"] == 20'
get "/api/v1/top?query=cpu%7Bservice%3D%22other%22%7D&from=1794700000&to=1794700100" >top.json || true
python3 - one.pb <<'PYTHON' >lost.pb
import sys
d = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(d.replace(b"\x32\x03cpu", b"\x32\x04lost"))
PYTHON
push lost.pb 'service=shop&host=h1&name=agent' >/dev/null
get "/api/v1/top?$shop&from=1794700000&to=1794700100" >top.json
json top.json 'd["quality"]["dropped"] == 100'

# Samples of spans and traces only.
for ids in 'span_id=00000000000000a1 120' 'span_id=00000000000000A1&span_id=00000000000000a2 200' \
    'trace_id=00000000000000000000000000000001 200' \
    'trace_id=00000000000000000000000000000001&span_id=00000000000000a2 80' \
    'trace_id=00000000000000000000000000000003 0'; do
    get "/api/v1/top?$shop&$always&${ids% *}" >top.json
    json top.json "d['total'] == ${ids#* }"
    get "/api/v1/flame?$shop&$always&format=folded&${ids% *}" >got.folded
    [ "$(awk '{sum += $NF} END {print sum + 0}' got.folded)" = "${ids#* }" ]
done
status 400 "$url/api/v1/top?$shop&$always&span_id=xyz"
json answer.txt '"is not a span id" in d["message"]'
get "/api/v1/exemplars?$shop&$always&function=query" >exemplars.json
json exemplars.json 'sorted(e["value"] for e in d["exemplars"]) == [30, 90] and not d["more"] and
    all(e["stack"] == ["query", "handle", "main"] and e["span_id"] == "00000000000000a1"
        for e in d["exemplars"])'
get "/api/v1/exemplars?$shop&$always&limit=1&span_id=00000000000000a2" >exemplars.json
json exemplars.json 'len(d["exemplars"]) == 1 and d["more"] and d["unit"] == "nanoseconds"'

# Around a function: both trees' totals are the function's.
get "/api/v1/callers?$shop&$always&function=handle" >callers.json
json callers.json 'd["flat"] == 0 and d["cum"] == 200 and d["total"] == 400'
json callers.json '[(f["function"], f["cum"]) for f in d["callers"]] == [("main", 200)] and
    [(f["function"], f["cum"]) for f in d["callees"]] == [("query", 120), ("render", 80)]'
json callers.json 'all(sum(d[t]["self"][0]) == 200 for t in ("caller_tree", "callee_tree"))'
json callers.json '[d["caller_tree"]["strings"][i] for i in d["caller_tree"]["functions"]["name"]] ==
    ["handle", "main"]'
get "/api/v1/callers?$shop&$always&function=main" >callers.json
json callers.json 'd["callers"][0]["function"] == "" and d["cum"] == 400'

# All formats, of flame, profile and diff.
for format in json pprof folded svg html otlp speedscope; do
    status 200 "$url/api/v1/flame?$shop&$always&format=$format"
    mv answer.txt flame.out
    status 200 "$url/api/v1/profile?$shop&$always&format=$format"
    cmp flame.out answer.txt
done
status 400 "$url/api/v1/flame?$shop&$always&format=jfr"
for format in json svg html; do status 200 "$url/api/v1/diff?$shop&$always&format=$format"; done
for format in pprof folded otlp wrong; do status 400 "$url/api/v1/diff?$shop&$always&format=$format"; done
get "/api/v1/diff?query=cpu%7Bpod%3D%22b%22%7D&base_query=cpu%7Bpod%3D%22a%22%7D&$always&normalize=none" >diff.json
json diff.json 'd["base_total"] == 100 and d["new_total"] == 300 and
    {f["function"]: f["flat_change"] for f in d["functions"]}["idle"] == 100'

both="query=cpu%7Bpod%3D%22b%22%7D&base_query=cpu%7Bpod%3D%22a%22%7D&$always&format=flame"
get "/api/v1/diff?$both&normalize=none&focus=main&focus=idle" >diff.json
json diff.json 'sum(d["flame"]["self"][0]) - sum(d["flame"]["base"][0]) == 100'
json diff.json '[d["flame"]["strings"][i] for i in d["flame"]["functions"]["name"]] == ["main", "idle"]'
get "/api/v1/diff?$both&max_nodes=2" >diff.json
json diff.json 'len(d["flame"]["nodes"]["up"]) == 1 and d["flame"]["dropped"] > 0'
status 404 "$url/api/v1/diff?$both&focus=idle"

# A parameter that isn't one is refused before anything is begun.
for route in types labels series flame top timeseries diff exemplars profile lines; do
    status 400 "$url/api/v1/$route?query=cpu&nonsense=1"
done

# A question that needs more memory than one may have says what to narrow.
python3 -c 'import random
random.seed(1)
for i in range(60000): print(f"main;f{i % 300};g{i};h{random.random()} 1")' >large.folded
push large.folded 'service=large' >/dev/null
large="query=samples%7Bservice%3D%22large%22%7D&$always"
status 413 "$url/api/v1/flame?$large"
json answer.txt 'd["code"] == "resource_exhausted" and "limits.query_memory" in d["message"] and
    "shorter time" in d["message"]'
status 200 "$url/api/v1/flame?$shop&$always"

# Browsers: another page may read answers if it is the one that was named, and nothing is kept.
curl -sS -D head.txt -o answer.txt "$url/api/v1/types?$always"
grep -i '^cache-control: no-store' head.txt >/dev/null
grep -i '^access-control-allow-origin: https://ui.example' head.txt >/dev/null
curl -sS -D head.txt -o answer.txt -X OPTIONS -H 'Origin: https://ui.example' \
    -H 'Access-Control-Request-Method: GET' "$url/api/v1/flame"
grep '^HTTP/1.1 204' head.txt >/dev/null
grep -i '^access-control-allow-methods:.*GET' head.txt >/dev/null
status 405 -X DELETE "$url/api/v1/flame"
curl -sS -I "$url/api/v1/flame?$shop&$always" >head.txt
grep '^HTTP/1.1 200' head.txt >/dev/null
stop_server

# Nobody waits: the question is given up, which the server's own figures show.
start_server busy --in-memory -c keep.yaml
python3 -c 'import random
random.seed(2)
for i in range(100000): print(f"main;f{i % 300};g{i};h{random.random()} 1")' >larger.folded
for i in 1 2 3; do push larger.folded "service=large&part=$i" >/dev/null; done
given_up() { get /metrics | awk '/^assay_http_requests_total.*"499"/ {sum += $NF} END {print sum + 0}'; }
for tries in $(seq 100); do
    curl -sS -m "0.0$((tries % 9 + 1))" -o answer.txt \
        "$url/api/v1/diff?query=samples%7Bservice%3D%22large%22%7D&$always" 2>/dev/null || true
    [ "$(given_up)" = 0 ] || break
done
[ "$(given_up)" -gt 0 ]
stop_server

# A store on disk leaves the smallest out of a picture and says so. Tables leave nothing out, and
# neither does what is taken along.
start_server disk --data disk -c api.yaml
push large.folded 'service=large' >/dev/null
get "/api/v1/flame?max_nodes=50000&$large" >part.json
json part.json 'd["quality"]["total"] == 60000 == sum(d["flame"]["self"][0])'
json part.json "0 < d[\"quality\"][\"cut\"] == d[\"flame\"][\"cut\"][0] <= 60000"
get "/api/v1/top?$large&limit=2&sort=cum&search=f" >part.json
json part.json 'd["quality"]["cut"] == 0 and d["matched"] == 60000 and d["function_count"] == 300 and
    [(f["function"], f["cum"]) for f in d["functions"]] == [("f0", 200), ("f1", 200)]'
get "/api/v1/top?$large&limit=2&sort=cum" >part.json
json part.json 'd["function_count"] == 120301 and d["functions"][0]["cum"] == 60000'
status 413 "$url/api/v1/flame?$large&format=folded"
stop_server
