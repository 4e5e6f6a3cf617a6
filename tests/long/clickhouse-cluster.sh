# SPDX-License-Identifier: Apache-2.0
# The store on a cluster of ClickHouse, two shards of two replicas: answers are those of one host,
# batches are stored once whichever server gets them, and pushes and queries go on without a node.
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/clickhouse.bash"
. "$ROOT/tests/server/clickhouse_cluster.bash"
. "$ROOT/tests/server/answers.bash"

start_cluster
store="clickhouse://$cluster_hosts/assay?cluster=four"
refuse() {
    local wanted=$1
    shift
    if "$ASSAY" store "$@" 2>refused.log; then return 1; fi
    grep -F "$wanted" refused.log
}
refuse 'code 170' init --store "clickhouse://$cluster_hosts/assay?cluster=five"
refuse 'requires cluster' init --store "clickhouse://$cluster_hosts/assay?quorum=2"
refuse 'letters, digits' init --store "clickhouse://$cluster_hosts/assay?cluster=four'"
"$ASSAY" store init --store "$store"
"$ASSAY" store init --store "$store"
refuse 'name it in the' stats "clickhouse://$cluster_hosts/assay"
refuse 'name all' stats "clickhouse://${cluster_hosts%,*}/assay?cluster=four"

start_server one --data data --store "$store" -c keep.yaml
first=$url first_pid=$pid
push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
json answer.json 'd["windows"] == 14 and "repeated" not in d'
start_server two --data data2 --store "$store" -c keep.yaml
check_answers
push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
json answer.json 'd["repeated"]'
for i in 1 2 3; do
    push "$file" 'service=bank' -H "X-Assay-Batch-Id: c$i" >answer.json
    json answer.json '"repeated" not in d'
done

# Every replica of a shard has the same, and both shards have some.
counts() {
    for n in "$@"; do
        clickhouse_ask "127.0.0.1:${http_port[n]}" 'SELECT count() FROM assay.samples_local FORMAT TSV'
    done
}
mapfile -t count < <(counts 1 2 3 4)
[ "${count[0]}" = "${count[1]}" ] && [ "${count[2]}" = "${count[3]}" ]
[ "${count[0]}" -gt 0 ] && [ "${count[2]}" -gt 0 ]
"$ASSAY" store check "$store"
[[ $("$ASSAY" store stats "$store") == *" 56 windows of 28 series and 2 services"* ]]

# Views add up both shards.
[ "$(clickhouse_ask "127.0.0.1:${http_port[2]}" "SELECT sum(flat) FROM assay.functions_by_hour
    WHERE service = 'bank' AND type LIKE 'process_cpu:cpu:%' FORMAT TSV")" = 6390000000 ]

# Without a node, and then without a server. Senders retry: an insert that waits for a replica whose
# death isn't known yet may be stored or not.
again() {
    local tries=0
    until push "$@" >answer.json; do
        [ $((tries += 1)) -le 300 ] || return 1
        cat answer.json >&2
        sleep 0.5
    done
}
check_shop() {
    get "/api/v1/profile?query=cpu%7Bservice%3D%22shop%22%7D&$always" >got.pb.gz
    "$ASSAY" report got.pb.gz -n 0 -f csv >got.csv
    cmp want.csv got.csv
}
node_kill 1
again "$file" 'service=rest' -H 'X-Assay-Batch-Id: d1'
push "$file" 'service=rest' -H 'X-Assay-Batch-Id: d1' >answer.json
json answer.json 'd["repeated"]'
check_shop
kill -9 "$pid"
wait "$pid" || true
url=$first pid=$first_pid
check_shop
push "$file" 'service=rest' -H 'X-Assay-Batch-Id: d1' >answer.json
json answer.json 'd["repeated"]'
node_run 1
get "/api/v1/top?query=cpu%7Bservice%3D%22rest%22%7D&$always" >top.json
json top.json 'd["total"] == 2130000000'
"$ASSAY" store check "$store"
stop_server
