# SPDX-License-Identifier: Apache-2.0
# Flamebearer JSON as Pyroscope's API gives it: every function's value, alone and with what it calls,
# is that of the profile that was pushed.
. "$ROOT/tests/server/common.bash"
start_server own --data store -c keep.yaml
push "$FIXTURES/man/cpu.pb.gz" 'service=shop' >/dev/null
get "/pyroscope/render?query=$cpu%7Bservice_name%3D%22shop%22%7D&format=json&max-nodes=100000&$always" >own.json
stop_server
functions() {
    "$ASSAY" report -n 0 --format json "$@" >report.json
    jq -r '"total \(.total)", (.rows | sort_by(.function)[] | "\(.function) \(.flat) \(.cum)")' report.json
}
functions -t cpu "$FIXTURES/man/cpu.pb.gz" >expected
functions own.json >got
diff expected got
[ "$(wc -l <got)" -gt 5 ]
