# SPDX-License-Identifier: Apache-2.0
# A sample of the faults that tests/long/faults-agent.sh injects into an agent: BPF calls and large
# allocations while it starts.
. "$ROOT/tests/agent/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
start_server server --data store
python3 "$ROOT/tests/faults/agent.py" 3 0 "$url" bpf large
stop_server
