# SPDX-License-Identifier: Apache-2.0
# The server goes away for a while and comes back; the agent is killed meanwhile. What was sampled
# before its spool had it arrives once, in order of time, and as much CPU time as was used.
. "$ROOT/tests/agent/common.bash"
. "$ROOT/tests/agent/outage.bash"

start_server server --data store
start_agent agent
need_host agent
# shellcheck disable=SC2034 # for away_for_seconds
listen=${url#http://}
away_for_seconds "${OUTAGE_SECONDS:-20}"

# The same with an agent that is killed now and then: by what each request is called.
behave ok
start_fake
url=http://127.0.0.1:$port
behave 503
killed_agent "${OUTAGE_KILLS:-2}"
