# SPDX-License-Identifier: Apache-2.0
# A cluster under load, without each of its parts in turn: nodes that are killed or hang, ZooKeeper,
# replicas that can't reach each other, a shard whose disk is full, the server itself. What was
# acknowledged is there once, and what wasn't is there whole or not at all. See load.py.
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/clickhouse.bash"
. "$ROOT/tests/server/clickhouse_cluster.bash"
load() { python3 "$ROOT/tests/server/load.py" "$@"; }

need_cluster
undo=()
trap 'for what in "${undo[@]}"; do $what >/dev/null 2>&1 || true; done
    for pid in "${servers[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    umount -l node3/data 2>/dev/null || true' EXIT
mkdir -p node3/data
mount -t tmpfs -o size=256m tmpfs node3/data || { echo "mount isn't allowed here."; exit 77; }
start_cluster
store="clickhouse://$cluster_hosts/assay?cluster=four&timeout=5"
"$ASSAY" store init --store "clickhouse://$cluster_hosts/assay?cluster=four"

coproc driver { load pause --data paused --store "$store"; }
servers+=("$!")
tell() {
    echo "$*" >&"${driver[1]}"
    local line
    while read -r line <&"${driver[0]}"; do
        echo "$line"
        [ "$line" != "done $*" ] || return 0
    done
    return 1
}
tell load
tell acknowledge 5
for ((round = 0; round < ${CLUSTER_ROUNDS:-2}; round++)); do
    echo "# round $round"
    # One node, whose shard then has no quorum: the other shard goes on.
    node=$((round % 4 + 1))
    node_kill "$node"
    tell acknowledge 5
    node_run "$node"
    tell acknowledge 5

    # One that hangs.
    node=$(((round + 2) % 4 + 1))
    kill -STOP "${node_pid[node]}"
    sleep 3
    kill -CONT "${node_pid[node]}"
    tell acknowledge 5

    # Replicas of a shard that can't fetch from each other.
    table=assay_test_$$
    port=$(sed -n 's/.*<interserver_http_port>\([0-9]*\).*/\1/p' "node$node/config.xml")
    if nft add table inet "$table" && nft add chain inet "$table" out '{ type filter hook output priority 0; }'; then
        undo=("nft delete table inet $table")
        nft add rule inet "$table" out tcp dport "$port" drop
        tell acknowledge 5
        nft delete table inet "$table"
        undo=()
        tell acknowledge 5
    else
        echo "# nft isn't allowed here: no partition"
    fi

    # A full disk in a shard.
    if [ $((round % 4)) = 1 ]; then
        fallocate -l "$(df --output=avail -B1 node3/data | tail -n 1)" node3/data/filler || true
        tell acknowledge 5
        rm node3/data/filler
        tell acknowledge 5
    fi

    # ZooKeeper, without which nothing can be stored.
    kill -9 "$zookeeper_pid"
    wait "$zookeeper_pid" || true
    tell refuse 3 503
    zookeeper_run
    tell acknowledge 5

    # The server.
    tell kill
    tell end
    tell start
    tell load
    tell acknowledge 5
    if [ $((round % 10)) = 0 ]; then
        tell end
        tell check
        tell load
    fi
done
tell end
tell check
tell settle
"$ASSAY" store check "clickhouse://$cluster_hosts/assay?cluster=four"
