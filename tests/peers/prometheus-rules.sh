# SPDX-License-Identifier: Apache-2.0
# The alerts that come with the server: promtool accepts them, each metric that they name is one of a
# running server, and they fire and resolve when they should.
type promtool >/dev/null 2>&1 || { echo "promtool is not installed."; exit 77; }
. "$ROOT/tests/server/common.bash"

rules=$ROOT/packaging/prometheus/assay.rules.yml
promtool check rules "$rules" >checked.txt
grep -q 'SUCCESS: 10 rules found' checked.txt

start_server peer --in-memory
curl -sS "$url/metrics" >metrics.txt
grep -o 'assay_[a-z0-9_]*' <(sed -n 's/^ *expr: //p' "$rules") | sort -u >named.txt
[ "$(wc -l <named.txt)" -ge 9 ]
while read -r name; do
    grep -q "^# TYPE $name " metrics.txt || { echo "The server has no metric $name." >&2; exit 1; }
done <named.txt
stop_server

# The dashboards: PromQL that is right, metrics that there are, and SLIs of the example rules.
printf 'rules: %s/docs/rules.example.yaml\ncost: {core_hour: 1}\n' "$ROOT" >dashboards.yaml
start_server dashboards --in-memory -c dashboards.yaml
curl -sS --fail-with-body -o orders.json -d '{"agent":"a1","host":"h1","status":{"rate_hz":19}}' "$url/api/v1/agents/report"
curl -sS "$url/metrics" >metrics.txt
python3 - "$ROOT" <<'P'
import json, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
there = set(re.findall(r"^# TYPE (\S+) ", open("metrics.txt").read(), re.M))
slis = set(re.findall(r"\{name: (\w+), kind: ", (root / "docs/rules.example.yaml").read_text()))
rules, boards, used = [], sorted((root / "packaging/grafana").glob("*.json")), set()
assert len(boards) == 3, boards
for path in boards:
    board = json.loads(path.read_text())
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"]) >= 10
    for panel in board["panels"]:
        for target in panel["targets"]:
            expr = target["expr"]
            names = set(re.findall(r"\b((?:assay|process)_\w+)", expr))
            assert names, expr
            assert names <= there, f"{path.name}: the server has no metric {names - there}"
            for sli in re.findall(r'sli="(\w+)"', expr):
                assert sli in slis, f"{path.name}: docs/rules.example.yaml has no SLI {sli}"
                used.add(sli)
            rules.append(expr.replace("$service", "shop"))
assert slis == used, f"on no dashboard: {slis - used}"
json.dump({"groups": [{"name": "g", "rules": [{"record": f"r{i}", "expr": e} for i, e in enumerate(rules)]}]},
          open("dashboards.yml", "w"))
print(len(rules), "expressions")
P
promtool check rules dashboards.yml >checked.txt
stop_server

cat >test.yml <<Y
rule_files: [$rules]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: assay_build_info, values: '1x100'}
      - {series: assay_store_writable, values: '1x10 0x30 1x60'}
      - series: 'assay_finding_growth{tenant="t",service_name="shop",version="2",base_version="1",function="parse",id="f1"}'
        values: '_x9 0.2x40 stale'
      - series: 'assay_finding_leak_bytes_per_hour{tenant="t",service_name="shop",version="2",type="memory:inuse_space:bytes:space:bytes",function="remember",id="f2"}'
        values: '_x9 62914560x40 stale'
      - {series: 'assay_ingest_refused_total{reason="parse"}', values: '0+10x100'}
      - {series: assay_ingest_pushes_total, values: '0+100x100'}
    alert_rule_test:
      - {eval_time: 5m, alertname: AssayRegression}
      - eval_time: 20m
        alertname: AssayRegression
        exp_alerts:
          - exp_labels: {severity: ticket, tenant: t, service_name: shop, version: "2", base_version: "1", function: parse, id: f1}
            exp_annotations:
              summary: parse in shop 2 grew by 20% since 1
              description: The page /findings of the server links to the comparison; so does \`assay findings --service shop\`.
      - {eval_time: 60m, alertname: AssayRegression}
      - eval_time: 20m
        alertname: AssayLeak
        exp_alerts:
          - exp_labels: {severity: ticket, tenant: t, service_name: shop, version: "2", type: "memory:inuse_space:bytes:space:bytes", function: remember, id: f2}
            exp_annotations:
              summary: Memory of remember in shop climbs by 60MiB an hour
              description: The page /findings of the server links to the comparison; so does \`assay findings --service shop\`.
      - {eval_time: 12m, alertname: AssayNotWritable}
      - eval_time: 20m
        alertname: AssayNotWritable
        exp_alerts:
          - exp_labels: {severity: page}
            exp_annotations:
              summary: The server can't store pushes
              description: GET /api/v1/health says why, such as a full disk.
      - {eval_time: 60m, alertname: AssayNotWritable}
      - eval_time: 40m
        alertname: AssayRefusesPushes
        exp_alerts:
          - exp_labels: {severity: ticket}
            exp_annotations:
              summary: 10% of the pushes are rejected
              description: GET /api/v1/senders has the reasons by sender.
      - {eval_time: 60m, alertname: AssayDown}
Y
promtool test rules test.yml
