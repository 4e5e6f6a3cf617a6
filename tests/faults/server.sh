# SPDX-License-Identifier: Apache-2.0
# A sample of the faults that tests/long/faults-server.sh injects into a server: failed writes, syncs and
# allocations.
. "$ROOT/tests/server/common.bash"
export PYTHONPATH="$ROOT/tests/server:$ROOT/tests/faults"
python3 "$ROOT/tests/faults/server.py" --running 3 write large small
# All of them: one that fails while a day's file is made must not leave half of it.
python3 "$ROOT/tests/faults/server.py" --running 30 --data synced sync
