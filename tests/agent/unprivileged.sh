# SPDX-License-Identifier: Apache-2.0
# Without privilege the agent looks at what it may, and says so in one line; or says in a sentence
# why it can't do anything.
. "$ROOT/tests/agent/common.bash"

as_nobody=()
if [ "$(id -u)" -eq 0 ]; then
    type setpriv >/dev/null || { echo "setpriv is missing."; exit 77; }
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all)
    chmod 711 "$PWD/.." "$PWD"
    mkdir -m 777 own
    cp "$ASSAY" own/assay
    cp busy own/
    "${as_nobody[@]}" own/assay version >/dev/null 2>&1 ||
        { echo "Another user cannot run the program here."; exit 77; }
else
    mkdir own
    cp "$ASSAY" own/assay
    cp busy own/
fi
start_server server --data store
OTEL_SERVICE_NAME="mine-$$" "${as_nobody[@]}" own/busy 600 &
busy=$!
agents+=("$busy")
: >agent.log
"${as_nobody[@]}" own/assay agent --server "$url" --data "$PWD/own/data" 2>agent.log &
agent=$!
agents+=("$agent")
tries=0
until grep 'Sampling by' agent.log >/dev/null || ! kill -0 "$agent" 2>/dev/null; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.05
done
if ! kill -0 "$agent" 2>/dev/null; then
    # A kernel that forbids it: one sentence that says what would help.
    cat agent.log
    [[ $(cat agent.log) == *perf_event_paranoid* || $(cat agent.log) == *"perf events"* ]]
    [ "$(wc -l <agent.log)" -le 2 ]
    echo "This kernel lets a user sample nothing."
    exit 77
fi
if ! grep 'of this user' agent.log >/dev/null; then
    echo "This user may sample the whole machine."
    exit 77
fi
await_cpu 1 "$busy"
stop_agent
kill "$busy"
[ "$(python3 -c "print($(seconds "{service_name=\"mine-$$\"}") > 0.2)")" = True ]
