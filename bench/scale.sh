#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scale.sh [--quick]: what a server on ClickHouse takes, keeps and answers. See README.md. $BUILD is a
# build directory (default: build/); $CHDB_PYTHON a Python that has chdb (default: python3).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(readlink -f "${BUILD:-$root/build}")
ninja -C "$build" assay assay-simulate >/dev/null
export ROOT=$root ASSAY=$build/assay PYTHONPATH=$root/tests/server
work=$(mktemp -d)
servers=()
trap 'for pid in "${servers[@]}"; do kill -9 "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
. "$root/tests/server/clickhouse.bash"
cd "$work"
failed=0
measure() {
    "$ASSAY" store init --store "clickhouse://$clickhouse/assay" >/dev/null
    python3 "$root/bench/scale.py" --assay "$ASSAY" --name "$1" --host "$clickhouse" \
        --engine-pid "$clickhouse_pid" "${@:2}" || failed=1
}
if type clickhouse-server >/dev/null 2>&1; then
    start_clickhouse_old old
    measure "ClickHouse 18.16" "$@"
    kill "$clickhouse_pid" || true
else
    echo "clickhouse-server isn't installed: not measured."
fi
if "${CHDB_PYTHON:-python3}" -c 'import chdb' 2>/dev/null; then
    start_clickhouse_current current
    measure "current engine" --current "$@"
else
    echo "chdb isn't installed: the current engine isn't measured."
fi
exit "$failed"
