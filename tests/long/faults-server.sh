# SPDX-License-Identifier: Apache-2.0
# Every kind of call of a server fails in turn, at many places: see tests/faults. Half an hour on a busy
# machine; FAULT_POINTS is how many places of each kind.
. "$ROOT/tests/server/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
for kind in write sync map socket large small; do
    python3 "$ROOT/tests/faults/server.py" --data "data-$kind" "${FAULT_POINTS:-60}" "$kind"
done
