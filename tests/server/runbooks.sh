# SPDX-License-Identifier: Apache-2.0
# The commands of the runbooks are right: those that ask a server work on one with such data, and
# those about a host have no option that their program doesn't know.
. "$ROOT/tests/server/common.bash"

printf 'cost: {core_hour: 0.5, currency: EUR}\n' >>keep.yaml
start_server first --data data -c keep.yaml
python3 "$ROOT/tests/server/runbooks.py" "$ROOT/docs/runbooks" "$ASSAY" "$url"
[ "$(find "$ROOT/docs/runbooks" -name '*.md' | wc -l)" -ge 10 ]
"$ASSAY" rules check "$ROOT/docs/rules.example.yaml"
stop_server
