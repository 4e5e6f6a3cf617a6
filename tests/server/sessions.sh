# SPDX-License-Identifier: Apache-2.0
# Random sessions over kept connections, pipelined, in chunks and broken, against a model: sessions.py.
. "$ROOT/tests/server/common.bash"
start_server sessions --data store -c keep.yaml
python3 "$ROOT/tests/server/sessions.py" "$url" "${SESSIONS:-150}" "${SESSION_SEED:-$RANDOM}"
kill -0 "$pid"
stop_server
if grep -e AddressSanitizer -e 'runtime error' sessions.log; then exit 1; fi
