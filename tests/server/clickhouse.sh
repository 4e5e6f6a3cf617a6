# SPDX-License-Identifier: Apache-2.0
# The store on ClickHouse: the store's test suite, and servers, on the engine that Debian has.
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/clickhouse.bash"
. "$ROOT/tests/server/answers.bash"

start_clickhouse_old old
check_clickhouse

# Users with passwords, and hosts that don't answer.
printf 'secret\n' >password
"$ASSAY" store init --store "clickhouse://assay@$clickhouse/other?password_file=$PWD/password"
"$ASSAY" store init --store "clickhouse://127.0.0.1:1,$clickhouse/other"
printf 'wrong\n' >password
refuse() {
    local wanted=$1
    shift
    if "$ASSAY" store init --store "$@" 2>refused.log; then return 1; fi
    grep -F "$wanted" refused.log
}
refuse 'code 193' "clickhouse://assay@$clickhouse/other?password_file=$PWD/password"
refuse 'Failed to connect' 'clickhouse://127.0.0.1:1/other'
refuse 'password_file' 'clickhouse://assay:secret@127.0.0.1:1/other'
refuse 'unknown setting' 'clickhouse://127.0.0.1:1/other?colour=1'
refuse 'letters, digits' 'clickhouse://127.0.0.1:1/other;drop'
refuse 'Only stores on ClickHouse' 'memory:'
