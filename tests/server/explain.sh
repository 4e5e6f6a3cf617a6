# SPDX-License-Identifier: Apache-2.0
# assay explain: the symptom, the functions that are responsible, the version, and traces; what it
# says where nothing rose, where something is new, and where there is no data.
. "$ROOT/tests/server/common.bash"

start_server first --data data -c keep.yaml
now=$(($(date +%s) / 60 * 60 - 120))
python3 "$ROOT/tests/server/explain_fleet.py" "$url" "$now"

ask() { # SERVICE ... : the explanation of the last minute
    local service=$1
    shift
    get "/api/v1/explain?service=$service&at=$((now - 30))&window=1m$*" >"$service.json"
}

# A deploy makes one function slower: its callers and callees aren't named.
ask shop
json shop.json 'd["symptom"] == "cpu" and d["rose"] and [c["function"] for c in d["causes"]] == ["parse"]'
json shop.json 'd["causes"][0]["growth_low"] > 0.5 and d["causes"][0]["p"] < 0.001'
json shop.json 'd["since"]["version"] == "2" and [v["version"] for v in d["versions"]] == ["1", "2"]'
json shop.json "d['to'] == $now and d['from'] == $now - 60 and d['base_to'] <= d['from'] - 60"
json shop.json 'd["traces"] and set(d["traces"][0]["trace_id"]) == {"b"}'
json shop.json '"parse: " in d["text"] and "Since version 2" in d["text"] and "render" not in d["text"]'
# The comparison that it links to shows the same.
link=$(json shop.json 'd["link"]')
get "/api/v1/compare?${link#*\?}" >compared.json
json compared.json '[f["total"]["verdict"] for f in d["functions"] if f["function"] == "parse"] == ["grew"]'

# Waits for locks that weren't there before, the run queue, and memory.
ask locked
json locked.json 'd["symptom"] == "locks" and d["certain"] and d["causes"][0]["function"] in ("take", "pthread_mutex_lock")'
json locked.json 'd["since"] is None and len(d["versions"]) == 1'
ask starved
json starved.json 'd["symptom"] == "run queue"'
get "/api/v1/explain?service=grown&at=$((now - 150))&window=5m" >grown.json
json grown.json 'd["symptom"] == "heap" and [c["function"] for c in d["causes"]] == ["cache"]'
json grown.json 'abs(d["causes"][0]["base"] - 100) < 15 and abs(d["causes"][0]["value"] - 300) < 15'

# Nothing rose: CPU time, and no function.
ask calm
json calm.json 'd["symptom"] == "cpu" and not d["rose"] and d["causes"] == [] and "Nothing rose" in d["text"]'
json calm.json '[s["name"] for s in d["symptoms"] if s["rose"]] == []'

"$ASSAY" explain --url "$url" --service shop --at $((now - 30)) --window 1m >shop.txt
grep -q '^What rose: CPU time: ' shop.txt
grep -q '^Since version 2, first seen ' shop.txt
grep -q "^Comparison: $url/compare?query=" shop.txt
"$ASSAY" explain --url "$url" --service shop --at $((now - 30)) --window 1m -f json | cmp - shop.json
"$ASSAY" explain --url "$url" --service shop --at "$(date -d "@$((now - 30))" +%H:%M:%S)" --window 1m -f json | cmp - shop.json

# Wrong requests.
status 404 "$url/api/v1/explain?service=none"
json answer.txt '"no profiles in this window" in d["message"]'
status 404 "$url/api/v1/explain?service=shop&at=$((now - 86400 * 3))"
for wrong in '' 'service=' 'service=shop&at=never' 'service=shop&at=now%2B1h' 'service=shop&window=1s' 'service=shop&window=2d' \
    'service=shop&window=x' 'service=shop&colour=red'; do
    status 400 "$url/api/v1/explain?$wrong"
done
code=0
"$ASSAY" explain --url "$url" --service none 2>error.txt || code=$?
[ "$code" = 1 ]
for wrong in '' '--service shop -f csv' '--service shop more'; do
    code=0
    # shellcheck disable=SC2086
    "$ASSAY" explain --url "$url" $wrong 2>error.txt || code=$?
    [ "$code" = 2 ]
done
stop_server
