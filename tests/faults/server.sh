# SPDX-License-Identifier: Apache-2.0
# A sample of the faults that tests/long/faults.sh injects into a server: failed writes, syncs and
# allocations.
. "$ROOT/tests/server/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
python3 "$ROOT/tests/faults/server.py" --running 3 write sync large small
