# SPDX-License-Identifier: Apache-2.0
# A token that is replaced while the agent runs: profiles, reports and orders go on with the new one.
. "$ROOT/tests/agent/common.bash"

token() { "$ASSAY" token create "$1" --file tokens -r "$2" 2>/dev/null >"$1.token"; } # NAME ROLES
token first ingest
token boss admin,read
start_server server --data store --tokens tokens
cp first.token token
printf 'server: {token_file: token}\n' >agent.yaml
start_agent agent --config agent.yaml
await() { # COMMAND...
    local tries=0
    until "$@"; do
        [ $((tries += 1)) -lt 1200 ] || { echo "Never: $*" >&2; tail ./*.log >&2; return 1; }
        sleep 0.1
    done
}
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat boss.token)" "$url$1"; }
is_known() { [[ $(ask /api/v1/agents) == *'"silent":false'* ]]; }
await is_known

token second ingest
"$ASSAY" token revoke first --file tokens
kill -HUP "$pid"
await grep 'Failed to poll the control server: .*401' agent.log >/dev/null
cp second.token token.new
mv token.new token
await grep 'Polling the control server works again' agent.log >/dev/null
# Its word counts again.
"$ASSAY" control off --server "$url" --token-file boss.token >/dev/null
await grep 'Capture is off' agent.log >/dev/null
# What was sampled meanwhile was kept, and comes.
is_sent() { [ -z "$(find agent/spool -maxdepth 1 -name '*.batch')" ]; }
await is_sent
stop_agent
