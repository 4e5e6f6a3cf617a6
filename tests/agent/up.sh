# SPDX-License-Identifier: Apache-2.0
# `assay up`: server and agent in one command; the agent comes back when it is gone, both end with it.
. "$ROOT/tests/agent/common.bash"

"$ASSAY" up --listen 127.0.0.1:0 --data "$PWD/data" --rate 49 --agent-config generous.yaml 2>up.log &
up=$!
agents+=("$up")
until_log() { # TEXT COUNT
    local tries=0
    until [ "$(grep -c "$1" up.log)" -ge "$2" ]; do
        kill -0 "$up"
        if [ $((tries += 1)) -gt 600 ]; then cat up.log >&2; return 1; fi
        sleep 0.1
    done
}
until_log 'serving on' 1
until_log 'Sampling by' 1
if grep 'of this user' up.log >/dev/null; then
    echo "This user may not sample the whole machine."
    kill "$up"
    exit 77
fi
OTEL_SERVICE_NAME="known-$$" ./busy 2
"$ASSAY" agent status --data "$PWD/data/agent" >status.txt
grep '^sampling  by .*, 49 times a second' status.txt >/dev/null
"$ASSAY" agent status --data "$PWD/data/agent" --json >status.json
json status.json 'd["samples"] > 0 and d["rate_hz"] == 49 and d["resident_bytes"] > 1 << 20'
curl -sS --unix-socket "$PWD/data/agent/agent.sock" http://localhost/metrics >metrics.txt
grep '^assay_agent_samples_total [1-9]' metrics.txt >/dev/null
grep '^# TYPE assay_agent_lost_total counter' metrics.txt >/dev/null

# The agent is a child that can go and come back.
child=$(pgrep -P "$up" -f "assay agent" | sed -n 1p)
kill -9 "$child"
until_log 'Sampling by' 2
[ "$(pgrep -P "$up" -f 'assay agent' | sed -n 1p)" != "$child" ]
kill -TERM "$up"
wait "$up"
[ -z "$(pgrep -f "$PWD/data/agent" || true)" ]

# All of it is there the next time, and what the killed one had taken up to its last window.
start_server again --data data/store
get "/api/v1/label/service_name/values?$always" >services.json
json services.json 'len(d) > 0'
