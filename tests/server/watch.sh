# SPDX-License-Identifier: Apache-2.0
# Marks and findings of a running server: a deploy that makes one function slower is noticed,
# listed, and still known after a restart. watch_fleet.py says what the truth is.
. "$ROOT/tests/server/common.bash"

cat >>keep.yaml <<'Y'
watch: {interval: 1s, first_look: 1m, cpu: 1}
Y
post() { status "$1" -H 'Content-Type: application/json' -d "$2" "$url/api/v1/marks"; }
metric() { curl -sS "$url/metrics" | sed -n "s/^$1 //p"; }

start_server first --data data -c keep.yaml

now=$(($(date +%s) / 10 * 10))
python3 "$ROOT/tests/server/watch_fleet.py" "$url" $((now - 420)) $((now - 40))

deadline=$((SECONDS + 120))
until get /api/v1/findings >findings.json && json findings.json 'len(d) > 0' 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || { cat first.log; curl -sS "$url/metrics" | grep watch; exit 1; }
    sleep 0.2
done
json findings.json '[(f["function"], f["state"], f["version"], f["base_version"]) for f in d] == [("parse", "open", "2", "1")]'
json findings.json 'd[0]["growth_low"] > 0.1 and d[0]["growth_low"] < d[0]["growth"] < d[0]["growth_high"]'
get /api/v1/findings?state=closed >closed.json
json closed.json 'd == []'
status 400 "$url/api/v1/findings?state=wrong"
"$ASSAY" findings --url "$url" --service shop >table.txt
grep -Eq 'open .*shop .*2 .*1 .*parse$' table.txt
"$ASSAY" findings --url "$url" --service other -f json >none.json
json none.json 'd == []'
[ "$(metric assay_findings_open)" = 1 ]
curl -sS -o metrics.txt "$url/metrics"
grep -q '^assay_finding_growth{tenant="anonymous",service_name="shop",version="2",base_version="1",function="parse",id="f[0-9a-f]*"} 0\.[0-9]' metrics.txt
# The comparison that it links to shows the same.
link=$(json findings.json 'd[0]["link"]')
[[ $link == '/compare?query='* ]]
get "/api/v1/compare?${link#*\?}&normalize=total" >compared.json
json compared.json '[f["total"]["verdict"] for f in d["functions"] if f["function"] == "parse"] == ["grew"]'

# The deploy is a mark, to which others are added.
get "/api/v1/marks?service=shop" >marks.json
json marks.json "[(m['time'], m['version'], m['by']) for m in d] == [($now - 420, '2', '')]"
post 201 '{"text":"a note for all"}'
post 201 "{\"service\":\"shop\",\"version\":\"2\",\"text\":\"cache\",\"time\":$((now - 425))}"
post 201 '{"service":"other","text":"elsewhere"}'
get "/api/v1/marks?service=shop&from=$((now - 430))" >marks.json
json marks.json "[m['text'] for m in d] == ['cache', 'a note for all'] and d[0]['time'] == $now - 425"
get "/api/v1/marks?to=$((now - 425))" >marks.json
json marks.json 'd == []'
for wrong in '{}' '{"service":"shop"}' '{"version":"2"}' '{"text":"x","time":-1}' '{"text":"x","time":1e12}' \
    '{"text":"x","colour":"red"}' '{"text":"a\nb"}' '[]' 'text'; do
    post 400 "$wrong"
done
status 415 -d '{"text":"x"}' "$url/api/v1/marks"
status 400 "$url/api/v1/marks?from=never"
stop_server

# All of it outlives the server; a file that is damaged doesn't start.
start_server second --data data -c keep.yaml
get /api/v1/marks >marks.json
json marks.json 'len(d) == 3'
get /api/v1/findings >again.json
python3 -c 'import json; a, b = (json.load(open(n))[0]["id"] for n in ("findings.json", "again.json")); assert a == b'
stop_server
echo '{"version":9,"tenants":[]}' >data/watch.json
if "$ASSAY" server --listen 127.0.0.1:0 --data data -c keep.yaml 2>refused.log; then exit 1; fi
grep -q 'watch.json.* Its version is 9; this program supports version 1' refused.log
rm data/watch.json

# Turned off, it looks at nothing, but takes marks.
sed -i 's/^watch:.*/watch: {enabled: false}/' keep.yaml
start_server off --data data -c keep.yaml
post 201 '{"text":"still"}'
[ "$(metric assay_watch_rounds_total)" = 0 ]
stop_server
