# SPDX-License-Identifier: Apache-2.0
# Alerts and webhooks: signed, grouped, sent once, also through kill -9, and resolved; redirects are
# not followed; receivers that are slow, broken or hostile don't hold up others.
. "$ROOT/tests/server/common.bash"

mkdir hooks
python3 "$ROOT/tests/server/alert_hooks.py" hooks &
servers+=("$!")
until [ -f hooks/port ]; do kill -0 "${servers[-1]}"; sleep 0.05; done
hook=http://127.0.0.1:$(cat hooks/port)
echo a-secret-of-24-characters >secret

rules() { # THRESHOLD
    cat <<Y
interval: 1s
delay: 0s
slis: [{name: parse_share, kind: share, query: cpu, function: parse, window: 15m}]
alerts:
- {name: ParseHigh, sli: parse_share, above: $1, severity: page, runbook: /runbooks/parse.md}
- {name: ParseToo, sli: parse_share, above: $1}
- {name: Inhibited, sli: parse_share, above: $1, inhibited_by: [ParseHigh]}
owners: [{service: shop, owner: team-shop}]
notify:
  external_url: http://assay.example.org
  group_wait: 0s
  group_interval: 1s
  allow: ["$hook"]
  webhooks:
  - {url: "$hook/slow"}
  - {url: "$hook/moved"}
  - {url: "$hook/huge"}
  - {url: "$hook/flaky"}
  - {url: "$hook/cut"}
  - {url: "$hook/drip"}
  - {url: "$hook/good", secret_file: secret}
Y
}
rules 0.1 >rules.yaml
"$ASSAY" rules check rules.yaml >checked.txt
grep -qx 'The rules are valid: 1 SLI, 3 alerts, 7 receivers.' checked.txt
echo 'rules: rules.yaml' >>keep.yaml
start_server first --data data -c keep.yaml
now=$(($(date +%s) / 10 * 10))
python3 "$ROOT/tests/server/watch_fleet.py" "$url" $((now - 420)) $((now - 10))

wait_lines() { # FILE COUNT
    local deadline=$((SECONDS + 120))
    until [ "$(cat "hooks/$1.jsonl" 2>/dev/null | wc -l)" -ge "$2" ]; do
        [ $SECONDS -lt $deadline ] || { cat first.log; ls hooks; exit 1; }
        sleep 0.1
    done
}
wait_lines good 1
wait_lines flaky 4
wait_lines moved 1
wait_lines huge 1
wait_lines cut 3
get /api/v1/alerts?state=firing >alerts.json
json alerts.json 'sorted(a["name"] for a in d) == ["Inhibited", "ParseHigh", "ParseToo"]'
json alerts.json '[a["inhibited"] for a in d if a["name"] == "Inhibited"] == [True]'
json alerts.json 'all(a["labels"]["owner"] == "team-shop" for a in d)'
get "/api/v1/alerts?service=other" >none.json
json none.json 'd == []'
status 400 "$url/api/v1/alerts?state=on"
# What the link shows is there.
link=$(json alerts.json '[a["link"] for a in d][0]')
[[ $link == '/compare?query=cpu%7B'* ]]
get "/api/v1/diff?${link#*\?}&limit=5" >diff.json
curl -sS "$url/metrics" >metrics.txt
grep -q '^assay_alerts{state="firing"} 3$' metrics.txt

python3 - <<'P'
import hashlib, hmac, json
lines = [json.loads(line) for line in open("hooks/good.jsonl")]
body = json.loads(lines[0]["body"])
assert body["status"] == "firing" and body["group"]["service_name"] == "shop", body
assert {a["name"] for a in body["alerts"]} <= {"ParseHigh", "ParseToo"}, body
assert all(a["link"].startswith("http://assay.example.org/compare?") for a in body["alerts"])
page = [a for a in body["alerts"] if a["name"] == "ParseHigh"]
assert page[0]["runbook"] == "http://assay.example.org/runbooks/parse.md" and page[0]["labels"]["owner"] == "team-shop"
times, signature = (part.split("=")[1] for part in lines[0]["headers"]["x-assay-signature"].split(","))
wanted = hmac.new(b"a-secret-of-24-characters", f"{times}.{lines[0]['body']}".encode(), hashlib.sha256).hexdigest()
assert signature == wanted
assert lines[0]["headers"]["x-assay-delivery"]
P
[ ! -e hooks/trap.jsonl ]
# A message that was cut off comes again, as the same one.
python3 - <<'P'
import json
lines = [json.loads(line) for line in open("hooks/cut.jsonl")][:3]
assert len({line["headers"]["x-assay-delivery"] for line in lines}) == 1, lines
P
if grep -q a-secret-of first.log; then exit 1; fi

# The receivers were told, and are not told again: neither after kill -9 nor after a stop.
sent=$(wc -l <hooks/good.jsonl)
rounds() { curl -sS "$url/metrics" | sed -n 's/^assay_rules_rounds_total //p'; }
wait_rounds() {
    local deadline=$((SECONDS + 120)) from
    from=$(rounds)
    until [ "$(rounds)" -ge $((from + $1)) ]; do [ $SECONDS -lt $deadline ]; sleep 0.1; done
}
kill -9 "$pid"
wait "$pid" || true
start_server second --data data -c keep.yaml
wait_rounds 3
stop_server
start_server third --data data -c keep.yaml
wait_rounds 3
[ "$(wc -l <hooks/good.jsonl)" = "$sent" ]
get /api/v1/alerts?state=firing >again.json
python3 -c 'import json; a, b = (sorted(x["id"] for x in json.load(open(n))) for n in ("alerts.json", "again.json")); assert a == b, (a, b)'

# Resolved, once the condition no longer holds.
rules 0.9 >rules.yaml
kill -HUP "$pid"
wait_lines good $((sent + 1))
tail -1 hooks/good.jsonl >last.json
json last.json 'json.loads(d["body"])["status"] == "resolved"'
get /api/v1/alerts >resolved.json
json resolved.json '{(a["state"], a["reason"]) for a in d} == {("resolved", "condition no longer holds")}'
stop_server

# On recorded data, the same rules say the same.
rules 0.1 >rules.yaml
"$ASSAY" rules test rules.yaml --data data --to now -f json >tested.json 2>slis.txt || { cat slis.txt; exit 1; }
grep -Eq '^parse_share: [0-9]+ values from 0\.[0-9]+ to 0\.[0-9]+$' slis.txt
json tested.json '{(r["state"], r["alert"]) for r in (d["rows"] if isinstance(d, dict) else d)} >= {("firing", "ParseHigh"), ("firing", "ParseToo")}'
