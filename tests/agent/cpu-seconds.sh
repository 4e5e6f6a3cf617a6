# SPDX-License-Identifier: Apache-2.0
# A busy program shows up under its service's name, with its functions and as much CPU time as the
# kernel says it used; and what the environment says beside is left out.
# Chance: CPU time from samples is an estimate, compared with the kernel's exact account.
. "$ROOT/tests/agent/common.bash"

start_server server --data store
cp generous.yaml agent.yaml
echo 'symbolize: host' >>agent.yaml
start_agent agent --config agent.yaml
need_host agent
OTEL_SERVICE_NAME="shop-$$" OTEL_RESOURCE_ATTRIBUTES=service.version=1.2.3,x=hunter2 PASSWORD=hunter2 \
    ./busy 10.5 >used.txt # longer than a window
status_of agent
stop_agent

got=$(seconds "{service_name=\"shop-$$\"}")
about "$got" "$(cat used.txt)" agent
json top.json '{"busy_leaf", "busy_caller", "main"} <= {f["function"] for f in d["functions"]}'
json top.json 'd["functions"][0]["function"] == "busy_leaf"'
get "/api/v1/series?$always" >series.json
json series.json "'1.2.3' in {s['labels'].get('version') for s in d if s['labels']['service_name'] == 'shop-$$'}"
json series.json 'all(s["labels"].get("host") for s in d)'
json series.json '"hunter2" not in json.dumps(d)'
# Windows begin where the clock has tens of seconds, but for the first.
json series.json 'any(s["last"] % 10 == 0 for s in d)'
