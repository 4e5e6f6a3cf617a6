# SPDX-License-Identifier: Apache-2.0
# As agent/outage and agent/upload-killed, with two minutes without a server and more deaths; and then
# a network that is cut between two hosts.
OUTAGE_SECONDS=120 OUTAGE_KILLS=6
. "$ROOT/tests/agent/outage.sh"
rm -rf fake.log fake.log.d feed.out spool
(KILLS=150 . "$ROOT/tests/agent/upload-killed.sh")

. "$ROOT/tests/agent/hosts.bash"
make_host server 10.9.8.1
make_host host 10.9.8.2
echo 'insecure: true' >open.yaml
rm -rf store agent
nsenter --net="/proc/${hosts[server]}/ns/net" "$ASSAY" server --listen 10.9.8.1:4040 --data store --config open.yaml 2>server.log &
servers+=("$!")
until_within 60 grep 'serving on' server.log >/dev/null
url=http://10.9.8.1:4040
get() { on server curl -sS --fail-with-body "$url$1"; }
nsenter --net="/proc/${hosts[host]}/ns/net" "$ASSAY" agent --server "$url" --data "$PWD/agent" --config generous.yaml 2>agent.log &
agent=$!
agents+=("$agent")
until_within 60 grep 'Sampling by' agent.log >/dev/null
sleep 15
cut host
OTEL_SERVICE_NAME="cut-off-$$" ./busy 30 >used.txt
until_within 90 has_waiting agent/spool 3
mend host
until_within 120 is_empty agent/spool
status_of agent
stop_agent
get "/api/v1/top?query=cpu%7Bservice_name%3D%22cut-off-$$%22%7D&$always" >top.json
about "$(python3 -c 'import json; print(json.load(open("top.json"))["total"] / 1e9)')" "$(cat used.txt)" agent
