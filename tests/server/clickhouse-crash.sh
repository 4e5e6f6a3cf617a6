# SPDX-License-Identifier: Apache-2.0
# The store on ClickHouse: what was acknowledged is there once, and what wasn't is there whole or
# not at all, after kill -9 of the server and of ClickHouse under load. See load.py.
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/clickhouse.bash"
load() { python3 "$ROOT/tests/server/load.py" "$@"; }

start_clickhouse_old old
"$ASSAY" store init --store "clickhouse://$clickhouse/assay"
store="clickhouse://$clickhouse/assay?timeout=5"

load kill --data killed --store "$store" --rounds "${CRASH_ROUNDS:-4}" --longest 2 \
    --check-every "${CRASH_CHECK_EVERY:-2}"

# ClickHouse itself, under load: the server answers 503 until it is back.
"$ASSAY" store init --store "clickhouse://$clickhouse/second"
coproc driver { load pause --data paused --store "clickhouse://$clickhouse/second?timeout=5"; }
driver_pid=$!
servers+=("$driver_pid")
tell() {
    echo "$*" >&"${driver[1]}"
    local line
    while read -r line <&"${driver[0]}"; do
        echo "$line"
        [ "$line" != "done $*" ] || return 0
    done
    return 1
}
tell load
for ((round = 0; round < ${CLICKHOUSE_ROUNDS:-2}; round++)); do
    tell acknowledge 10
    kill -9 "$clickhouse_pid"
    wait "$clickhouse_pid" || true
    tell refuse 5 503
    clickhouse_run "$PWD/old"
    tell acknowledge 5
done
tell end
tell check
tell settle
