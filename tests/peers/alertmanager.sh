# SPDX-License-Identifier: Apache-2.0
# Alertmanager groups, sends and resolves what the server tells it; restarts of either side send
# nothing twice and resolve nothing.
manager=$(type -P prometheus-alertmanager || type -P alertmanager) || { echo "Alertmanager is not installed."; exit 77; }
type amtool >/dev/null 2>&1 || { echo "amtool is not installed."; exit 77; }
. "$ROOT/tests/server/common.bash"

mkdir hooks
python3 "$ROOT/tests/server/alert_hooks.py" hooks &
servers+=("$!")
until [ -f hooks/port ]; do kill -0 "${servers[-1]}"; sleep 0.05; done
cat >am.yml <<Y
route: {receiver: hook, group_by: [service_name, version], group_wait: 1s, group_interval: 1s, repeat_interval: 4h}
receivers: [{name: hook, webhook_configs: [{url: "http://127.0.0.1:$(cat hooks/port)/good"}]}]
Y
amtool check-config am.yml >/dev/null
am_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
am=http://127.0.0.1:$am_port
start_manager() {
    "$manager" --config.file=am.yml --storage.path=am --cluster.listen-address= --web.listen-address="127.0.0.1:$am_port" 2>>am.log &
    am_pid=$!
    servers+=("$am_pid")
    until curl -sf "$am/-/ready" >/dev/null; do kill -0 "$am_pid" || { cat am.log; exit 1; }; sleep 0.1; done
}
start_manager

rules() { # THRESHOLD
    cat <<Y
interval: 1s
delay: 0s
slis: [{name: parse_share, kind: share, query: cpu, function: parse, window: 15m}]
alerts:
- {name: ParseHigh, sli: parse_share, above: $1, severity: page, runbook: /runbooks/parse.md}
- {name: ParseToo, sli: parse_share, above: $1}
notify:
  external_url: http://assay.example.org
  allow: ["$am/"]
  alertmanagers: ["$am"]
Y
}
rules 0.1 >rules.yaml
echo 'rules: rules.yaml' >>keep.yaml
start_server first --data data -c keep.yaml
now=$(($(date +%s) / 10 * 10))
python3 "$ROOT/tests/server/watch_fleet.py" "$url" $((now - 420)) $((now - 10))

wait_for() { # COMMAND...
    local deadline=$((SECONDS + 120))
    until "$@"; do [ $SECONDS -lt $deadline ] || { cat am.log first.log; exit 1; }; sleep 0.2; done
}
active() { [ "$(amtool --alertmanager.url="$am" alert query -o json 2>/dev/null | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))')" = "$1" ]; }
lines() { [ "$(cat hooks/good.jsonl 2>/dev/null | wc -l)" -ge "$1" ]; }
wait_for active 2
wait_for lines 1
amtool --alertmanager.url="$am" alert query -o json >alerts.json
json alerts.json '{a["labels"]["alertname"] for a in d} == {"ParseHigh", "ParseToo"}'
json alerts.json 'all(a["annotations"]["link"].startswith("http://assay.example.org/compare?") and a["labels"]["service_name"] == "shop" for a in d)'
# All of them in the first message, or the rest in a second one: by group, not by alert.
names() { python3 -c 'import json; print(len({a["labels"]["alertname"] for l in open("hooks/good.jsonl") for a in json.loads(json.loads(l)["body"])["alerts"]}))'; }
both() { [ "$(names)" = 2 ]; }
wait_for both
sent=$(wc -l <hooks/good.jsonl)

# Restarts: of the server by kill -9, of Alertmanager, which forgets alerts but not what it sent.
kill -9 "$pid"
wait "$pid" || true
start_server second --data data -c keep.yaml
kill -TERM "$am_pid"
wait "$am_pid" || true
start_manager
wait_for active 2
rounds() { curl -sS "$url/metrics" | sed -n 's/^assay_rules_rounds_total //p'; }
from=$(rounds)
some() { [ "$(rounds)" -ge $((from + 3)) ]; }
wait_for some
[ "$(wc -l <hooks/good.jsonl)" = "$sent" ]

rules 0.9 >rules.yaml
kill -HUP "$pid"
wait_for lines $((sent + 1))
tail -1 hooks/good.jsonl >last.json
json last.json 'json.loads(d["body"])["status"] == "resolved"'
wait_for active 0
stop_server
