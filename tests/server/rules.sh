# SPDX-License-Identifier: Apache-2.0
# SLIs of a running server: values and reasons in the API and at /metrics, new rules on SIGHUP, and
# rules with mistakes.
. "$ROOT/tests/server/common.bash"

cat >rules.yaml <<'Y'
interval: 1s
delay: 0s
slis:
- {name: cores, query: cpu, window: 10m}
- {name: parse_share, kind: share, query: cpu, function: parse, window: 10m}
- {name: heap, kind: level, query: inuse_space, window: 10m}
- {name: uploads, kind: upload_success}
Y
echo 'rules: rules.yaml' >>keep.yaml
start_server first --data data -c keep.yaml
now=$(($(date +%s) / 10 * 10))
python3 "$ROOT/tests/server/watch_fleet.py" "$url" $((now - 420)) $((now - 10))

wait_for() { # EXPRESSION over the SLIs by name
    local deadline=$((SECONDS + 120))
    until get /api/v1/slis >slis.json && python3 -c 'import json, sys
d = {s["name"]: s for s in json.load(open("slis.json"))}
sys.exit(not eval(sys.argv[1]))' "$1" 2>/dev/null; do
        [ $SECONDS -lt $deadline ] || { cat slis.json first.log; exit 1; }
        sleep 0.2
    done
}
wait_for '0.5 < d["cores"]["series"][0]["value"] < 0.8 and d["uploads"]["series"][0]["value"] == 1'
wait_for '0.15 < d["parse_share"]["series"][0]["value"] < 0.26'
wait_for 'd["heap"]["series"] == [] and d["heap"]["reason"]'
get "/api/v1/slis?name=cores&from=now-5m" >points.json
json points.json 'len(d) == 1 and len(d[0]["series"][0]["points"]) >= 1'
json points.json 'd[0]["series"][0]["labels"] == {"service_name": "shop"}'
curl -sS "$url/metrics" >metrics.txt
grep -q '^assay_sli{sli="cores",tenant="anonymous",service_name="shop"} 0\.' metrics.txt
grep -q '^assay_sli_absent{sli="heap",tenant="anonymous"} 1$' metrics.txt
if grep -q '^assay_sli{sli="heap"' metrics.txt; then exit 1; fi
status 400 "$url/api/v1/slis?from=never"
status 400 "$url/api/v1/slis?colour=red"

# Rules with mistakes change nothing; others replace them.
echo 'slis: [{name: cores}]' >rules.yaml
kill -HUP "$pid"
deadline=$((SECONDS + 60))
until grep -q 'rules.yaml:1: An SLI of the kind rate needs a query' first.log; do
    [ $SECONDS -lt $deadline ]
    sleep 0.1
done
get "/api/v1/slis?name=heap" >still.json
json still.json 'len(d) == 1'
printf 'interval: 1s\ndelay: 0s\nslis: [{name: other, query: cpu, window: 10m}]\n' >rules.yaml
kill -HUP "$pid"
wait_for 'list(d) == ["other"] and d["other"]["series"]'
get "/api/v1/slis?from=now-10m" >before.json
before=$(json before.json 'd[0]["series"][0]["points"][0][0]')
stop_server

# The series outlive the server. One that starts with mistakes says so.
start_server second --data data -c keep.yaml
deadline=$((SECONDS + 60))
until get "/api/v1/slis?from=now-10m" >again.json && json again.json "$before in [p[0] for s in d[0]['series'] for p in s['points']]" 2>/dev/null; do
    [ $SECONDS -lt $deadline ]
    sleep 0.2
done
stop_server
echo 'slis: [{name: cores}]' >rules.yaml
if "$ASSAY" server --listen 127.0.0.1:0 --data data -c keep.yaml 2>refused.log; then exit 1; fi
grep -q 'The rules are not valid: rules.yaml:1: An SLI' refused.log
