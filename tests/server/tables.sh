# SPDX-License-Identifier: Apache-2.0
# Tables, searches and shares are exact, however many services there are and however little of the
# whole fits into memory or into a picture: every number is compared with what was sent.
. "$ROOT/tests/server/common.bash"

printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\nlimits: {query_memory: 8MiB}\n' >small.yaml
start_server tables --data data -c small.yaml
python3 "$ROOT/tests/server/tables.py" "$url"
stop_server
start_server exports --data data -c keep.yaml
python3 "$ROOT/tests/server/tables.py" "$url" exports
stop_server
