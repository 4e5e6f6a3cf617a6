# SPDX-License-Identifier: Apache-2.0
# Every kind of call of server and agent fails in turn, at many places: see tests/faults.
. "$ROOT/tests/agent/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
python3 "$ROOT/tests/faults/server.py" "${FAULT_POINTS:-60}" write sync map socket large small
start_server server --data store
python3 "$ROOT/tests/faults/agent.py" "${FAULT_POINTS:-60}" 3 "$url" bpf write sync map socket large
stop_server
