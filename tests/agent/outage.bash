# SPDX-License-Identifier: Apache-2.0
# Outages, short in one test and long in another. Sourced after common.bash.
kill_all=$(trap -p EXIT | sed "s/^trap -- '//; s/' EXIT\$//; s/'\\\\''/'/g")
. "$ROOT/tests/agent/feed.bash"
trap 'eval "$kill_all"; for p in "${feeds[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT

waiting() { find "$1" -maxdepth 1 -name '*.batch' -printf '%f\n' | sed 's/\.batch$//' | sort; }
is_empty() { [ -z "$(waiting "$1")" ]; }
has_waiting() { [ "$(waiting "$1" | wc -l)" -ge "$2" ]; }

# until_within SECONDS COMMAND...
until_within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || { echo "It never came true: $*" >&2; return 1; }
        sleep 0.2
    done
}

# away_for_seconds N: no server at $listen for so long, while a program uses CPU time. The agent is
# told to end after all that is sent.
away_for_seconds() {
    local end=$((SECONDS + $1))
    stop_server
    OTEL_SERVICE_NAME="steady-$$" ./busy "$(($1 * 4 / 10))" >used.txt &
    local busy=$!
    until_within "$(($1 + 60))" has_waiting agent/spool "$(($1 / 10 - 1))"
    wait "$busy"
    while [ "$SECONDS" -lt "$end" ]; do sleep 0.2; done
    # What is on its way now was taken while there was no server.
    "$ASSAY" agent status --data "$PWD/agent" --json >during.json
    json during.json 'd["spool_batches"] >= 1 and d["upload_failures"] >= 1 and d["spool_dropped"] == 0'
    start_server server --data store --listen "$listen"
    # shellcheck disable=SC2034 # for seconds()
    url=http://$listen
    until_within 90 is_empty agent/spool
    status_of agent
    stop_agent
    about "$(seconds "{service_name=\"steady-$$\"}")" "$(cat used.txt)" agent
    get /api/v1/senders >senders.json
    json senders.json 'sum(s["pushes"] for s in d) >= 2'
    grep 'The server accepts profiles again' agent.log >/dev/null
    stop_server
}

# killed_agent N: an agent whose server doesn't take anything is killed N times, and what its spool
# has by then is what has to arrive.
killed_agent() {
    : >feed.out
    for ((i = 0; i < $1; i++)); do
        start_agent killed --config generous.yaml
        until_within 60 has_waiting killed/spool $((i + 1))
        sleep "0.$((RANDOM % 10))"
        kill -9 "$agent"
        wait "$agent" 2>/dev/null || true
        waiting killed/spool | sed 's/^/put /' >>feed.out
        sort -u feed.out -o feed.out
    done
    behave ok
    start_agent killed --config generous.yaml
    until_true all_stored
    stop_agent
    sed -n 's/.* stored //p' fake.log >order.txt
    [ "$(sed -n '$=' order.txt)" -gt "$1" ]
    sort -u order.txt | cmp - order.txt
    is_empty killed/spool
}
