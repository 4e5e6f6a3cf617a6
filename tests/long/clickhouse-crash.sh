# SPDX-License-Identifier: Apache-2.0
# tests/server/clickhouse-crash.sh with a thousand accidents.
export CRASH_ROUNDS=900 CRASH_CHECK_EVERY=20 CLICKHOUSE_ROUNDS=100
. "$ROOT/tests/server/clickhouse-crash.sh"
