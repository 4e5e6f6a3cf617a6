# SPDX-License-Identifier: Apache-2.0
# Every kind of call of an agent fails in turn, at many places: see tests/faults. FAULT_POINTS is how many
# places of each kind while it starts.
. "$ROOT/tests/agent/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
start_server server --data store
python3 "$ROOT/tests/faults/agent.py" "${FAULT_POINTS:-60}" 3 "$url" bpf write sync map socket large
stop_server
