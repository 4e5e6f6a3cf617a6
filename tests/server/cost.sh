# SPDX-License-Identifier: Apache-2.0
# What CPU time costs, by service, version, label, owner and function; what a faster function would
# save; the SLI; and a server without a price.
. "$ROOT/tests/server/common.bash"

printf 'cost: {core_hour: 0.5, currency: EUR}\nrules: rules.yaml\n' >>keep.yaml
cat >rules.yaml <<'Y'
interval: 1s
delay: 0s
slis:
- {name: cost, kind: cost, query: cpu, window: 1d}
- {name: wrong_cost, kind: cost, query: wall, window: 1d}
owners:
- {service: "sh.*", owner: team-shop}
Y
start_server priced --data data -c keep.yaml
start=$(($(date +%s) / 10 * 10 - 400))
send() { # SERVICE VERSION TEAM OFFSET STACK=NS...
    local query="service=$1&version=$2&team=$3" at=$((start + $4))
    shift 4
    python3 "$ROOT/tests/server/window_pprof.py" one.pb cpu nanoseconds "$at" 10 "$@"
    push one.pb "$query" >/dev/null
}
for at in 0 10 20 30; do # 2 cores, and 1 core by the next version; 4 cores beside them
    send shop 1 fruit $at 'main;serve;parse=15000000000' 'main;render=5000000000'
    send shop 2 fruit $((at + 40)) 'main;serve;parse=5000000000' 'main;render=5000000000'
    send till 1 money $at 'main;count=40000000000'
    send till 1 money $((at + 40)) 'main;count=40000000000'
done
python3 "$ROOT/tests/server/window_pprof.py" wall.pb wall nanoseconds "$start" 10 'main;serve=1000000000'
push wall.pb service=shop >/dev/null
window="from=$start&to=$((start + 80))"

near() { json "$1" "abs(($2) - ($3)) < 1e-6"; }
get "/api/v1/cost?$window" >cost.json
json cost.json '[r["name"] for r in d["rows"]] == ["till", "shop"] and d["currency"] == "EUR"'
near cost.json 'd["rows"][0]["cores"]' 4
near cost.json 'd["rows"][1]["cores"]' 1.5
near cost.json 'd["core_hours"]' 440/3600
near cost.json 'd["rows"][1]["cost"]' 120/3600*0.5
near cost.json 'd["rows"][0]["per_hour"]' 2
near cost.json 'd["per_month"]' 5.5*730*0.5
near cost.json 'd["rows"][1]["share"]' 120/440
get "/api/v1/cost?$window&group_by=service&group_by=version" >versions.json
json versions.json '[r["name"] for r in d["rows"]] == ["till, 1", "shop, 1", "shop, 2"]'
near versions.json 'd["rows"][2]["cores"]' 1
get "/api/v1/cost?$window&group_by=team&limit=1" >teams.json
json teams.json '[r["labels"] for r in d["rows"]] == [{"team": "money"}] and d["left_out"] == 1'
get "/api/v1/cost?$window&group_by=owner" >owners.json
json owners.json '[r["name"] for r in d["rows"]] == ["(no owner)", "team-shop"]'
get "/api/v1/cost?$window&group_by=function&query=%7Bservice%3D%22shop%22%7D" >functions.json
json functions.json '[r["name"] for r in d["rows"]] == ["parse", "render", "main", "serve"]'
near functions.json '[r["own_cost"] for r in d["rows"]][0]' 80/3600*0.5
near functions.json '[r["cores"] for r in d["rows"] if r["name"] == "main"][0]' 1.5
get "/api/v1/cost?$window&group_by=tenant" >tenants.json
json tenants.json '[(r["name"], r["share"]) for r in d["rows"]] == [("anonymous", 1.0)]'

get "/api/v1/whatif?$window&function=parse&faster=30%25" >whatif.json
near whatif.json 'd["saved_cores"]' 0.3
near whatif.json 'd["saved_per_month"]' 0.3*730*0.5
get "/api/v1/whatif?$window&function=serve&faster=0.5&count=flat" >own.json 2>/dev/null && exit 1
"$ASSAY" query whatif --url "$url" --function parse --faster 30% --from $start --to $((start + 80)) \
    'cpu{service="shop"}' >whatif.txt
grep -q '^parse takes 1 of 1.5 cores. If it were 30% faster, that would save 0.3 cores, 20.0%: 109.50 EUR a month, 1314.00 EUR a year.$' whatif.txt
"$ASSAY" query cost --url "$url" --group-by version --from $start --to $((start + 80)) >cost.txt
grep -q '^5.5 cores, 0.122 core hours in the range: 0.06 EUR, at this rate 2007.50 EUR a month.$' cost.txt
"$ASSAY" query cost --url "$url" --group-by function -f csv --from $start --to $((start + 80)) >cost.csv
grep -q ',count$' cost.csv

# Wrong requests.
for wrong in 'query=wall' 'limit=0' 'group_by=function&group_by=team' 'group_by=tenant&group_by=team' 'group_by=a&group_by=b&group_by=c&group_by=d&group_by=e' 'colour=red'; do
    status 400 "$url/api/v1/cost?$window&$wrong"
done
status 404 "$url/api/v1/cost?$window&query=cpu%7Bservice%3D%22none%22%7D"
for wrong in 'function=parse' 'faster=30%25' 'function=parse&faster=0' 'function=parse&faster=101%25' \
    'function=parse&faster=nan' 'function=parse&faster=-1' 'function=parse&faster=3x' 'function=parse&faster=0.3&count=all'; do
    status 400 "$url/api/v1/whatif?$window&$wrong"
done
status 404 "$url/api/v1/whatif?$window&function=nothing&faster=30%25"

# The price of a flame graph of CPU time, and of no other.
get "/api/v1/flame?$window&query=cpu" >flame.json
json flame.json 'd["price"] == {"core_hour": 0.5, "currency": "EUR"}'
get "/api/v1/flame?$window&query=wall" >flame.json
json flame.json '"price" not in d'

# The SLI, and the reason of one that isn't about CPU time.
deadline=$((SECONDS + 60))
until get /api/v1/slis >slis.json && json slis.json 'len(d[0]["series"]) == 2 and d[1]["reason"]' 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || { cat slis.json; exit 1; }
    sleep 0.2
done
json slis.json '{s["labels"]["service_name"]: round(s["value"], 6) for s in d[0]["series"]} == {"till": 2, "shop": 0.75}'
json slis.json '"CPU time" in d[1]["reason"]'
curl -sS "$url/metrics" >metrics.txt
grep -q '^assay_cost_core_hour{currency="EUR"} 0.5$' metrics.txt
stop_server

# By tenant: an admin of `anonymous` sees all, others their own.
everybody=$("$ASSAY" token create operator --file tokens -r admin,read,ingest 2>/dev/null)
reader=$("$ASSAY" token create reader --file tokens -r read 2>/dev/null)
acme=$("$ASSAY" token create acme --file tokens -r admin,read,ingest --tenant acme 2>/dev/null)
quiet=$("$ASSAY" token create quiet --file tokens -r admin,read,ingest --tenant quiet 2>/dev/null)
start_server tenants --data data -c keep.yaml --tokens tokens
python3 "$ROOT/tests/server/window_pprof.py" one.pb cpu nanoseconds "$start" 10 'main;count=60000000000'
push one.pb service=till -H "Authorization: Bearer $acme" >/dev/null
push wall.pb service=till -H "Authorization: Bearer $quiet" >/dev/null
cost_of() { curl -sS --fail-with-body -H "Authorization: Bearer $1" "$url/api/v1/cost?$window&$2"; }
cost_of "$everybody" group_by=tenant >all.json
json all.json '[r["name"] for r in d["rows"]] == ["anonymous", "acme"]'
near all.json 'd["rows"][0]["core_hours"]' 440/3600
near all.json 'd["rows"][1]["cost"]' 60/3600*0.5
near all.json 'd["rows"][1]["cores"]' 6
near all.json 'd["rows"][1]["share"]' 60/500
near all.json 'd["core_hours"]' 500/3600
cost_of "$everybody" 'group_by=tenant&query=%7Bservice%3D%22shop%22%7D' >shops.json
json shops.json '[r["name"] for r in d["rows"]] == ["anonymous"] and d["type"].startswith("process_cpu:")'
"$ASSAY" query cost --url "$url" --token-file <(echo "$everybody") --group-by tenant --from $start --to $((start + 80)) >tenants.txt
grep -q ' acme$' tenants.txt
cost_of "$reader" group_by=tenant >own.json
json own.json '[r["name"] for r in d["rows"]] == ["anonymous"]'
cost_of "$acme" group_by=tenant >own.json
json own.json '[r["name"] for r in d["rows"]] == ["acme"] and abs(d["cores"] - 6) < 1e-6'
status 404 -H "Authorization: Bearer $quiet" "$url/api/v1/cost?$window&group_by=tenant"
status 400 -H "Authorization: Bearer $everybody" "$url/api/v1/cost?$window&group_by=tenant&query=wall"
stop_server

# Without a price there are cores, and an SLI says why it is absent.
sed -i '/^cost/d' keep.yaml
start_server plain --data data -c keep.yaml
get "/api/v1/cost?$window" >plain.json
json plain.json 'd["cost"] is None and d["core_hour"] is None and abs(d["cores"] - 5.5) < 1e-6'
"$ASSAY" query whatif --url "$url" --function parse --faster 0.3 --from $start --to $((start + 80)) >plain.txt
grep -q 'have no price (cost.core_hour)' plain.txt
until get /api/v1/slis >slis.json && json slis.json '"no price" in d[0]["reason"]' 2>/dev/null; do
    [ $SECONDS -lt $((deadline + 60)) ] || { cat slis.json; exit 1; }
    sleep 0.2
done
stop_server

for wrong in '{core_hour: 0}' '{core_hour: -1}' '{core_hour: .nan}' '{core_hour: much}' '{currency: EUR}' \
    '{core_hour: 1, currency: "E R"}' '{core_hour: 1, currency: muchtoolong}' '{price: 1}'; do
    echo "cost: $wrong" >wrong.yaml
    if "$ASSAY" server --check-config -c wrong.yaml 2>wrong.log; then echo "accepted: $wrong"; exit 1; fi
    grep -q '^wrong.yaml:1: ' wrong.log || { cat wrong.log; exit 1; }
done
