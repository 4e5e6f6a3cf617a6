# SPDX-License-Identifier: Apache-2.0
# The server goes away for a while and comes back; the agent is killed meanwhile. What was sampled
# before its spool had it arrives once, in order of time, and as much CPU time as was used.
. "$ROOT/tests/agent/common.bash"
. "$ROOT/tests/agent/outage.bash"

start_server server --data store
start_agent agent --config generous.yaml
need_host agent
# shellcheck disable=SC2034 # for away_for_seconds
listen=${url#http://}

# The same, meanwhile, with an agent that is killed now and then: by what each request is called.
(
    # shellcheck disable=SC2034 # what this one starts is its own
    agents=() servers=()
    trap 'eval "$kill_all"; for p in "${feeds[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT
    behave ok
    start_fake
    url=http://127.0.0.1:$port
    behave 503
    killed_agent "${OUTAGE_KILLS:-2}"
) &
killed=$!
away_for_seconds "${OUTAGE_SECONDS:-20}"
wait "$killed"
