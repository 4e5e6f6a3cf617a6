# SPDX-License-Identifier: Apache-2.0
# The store on ClickHouse: the store's test suite, and servers, on a current engine.
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/clickhouse.bash"
. "$ROOT/tests/server/answers.bash"

start_clickhouse_current current
check_clickhouse
