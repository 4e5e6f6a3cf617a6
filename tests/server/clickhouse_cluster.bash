# SPDX-License-Identifier: Apache-2.0
# A cluster for tests, with clickhouse.bash: Debian's ZooKeeper and four of Debian's ClickHouse, two
# shards of two replicas each, on ports of 127.0.0.1.

need_cluster() {
    type clickhouse-server java >/dev/null 2>&1 && [ -e /usr/share/java/zookeeper.jar ] || {
        echo "A cluster needs the packages clickhouse-server and zookeeper."
        exit 77
    }
}

# Sets $zookeeper_pid; the port is in $zookeeper_port.
zookeeper_run() {
    java -Xmx96m -cp /usr/share/java/zookeeper.jar org.apache.zookeeper.server.quorum.QuorumPeerMain \
        "$PWD/zookeeper/zoo.cfg" >>zookeeper/out 2>&1 &
    zookeeper_pid=$!
    servers+=("$zookeeper_pid")
    local tries=0
    until (exec 3<>"/dev/tcp/127.0.0.1/$zookeeper_port") 2>/dev/null; do
        if ! kill -0 "$zookeeper_pid" 2>/dev/null || [ $((tries += 1)) -gt 600 ]; then
            tail -n 20 zookeeper/out >&2
            return 1
        fi
        sleep 0.1
    done
}

# node_run N: node 1 and 2 are shard 1, 3 and 4 shard 2; sets ${node_pid[N]}. Version 18.16 sometimes
# ends with a null pointer when two of its threads connect to ZooKeeper at once.
node_run() {
    local attempt
    for attempt in 1 2 3 4 5; do
        clickhouse-server --config-file="$PWD/node$1/config.xml" >>"node$1/out" 2>&1 &
        node_pid[$1]=$!
        servers+=("$!")
        while kill -0 "${node_pid[$1]}" 2>/dev/null; do
            ! clickhouse_ask "127.0.0.1:${http_port[$1]}" \
                "SELECT count() FROM system.zookeeper WHERE path = '/'" >/dev/null 2>&1 || return 0
            sleep 0.1
        done
        echo "# node $1 ended at its start ($attempt)"
    done
    tail -n 20 "node$1/out" >&2
    return 1
}

node_kill() {
    kill -9 "${node_pid[$1]}"
    wait "${node_pid[$1]}" || true
}

# Sets $cluster_hosts to the URL's list of hosts, and http_port[N].
start_cluster() {
    local n ports
    need_cluster
    mkdir zookeeper
    read -ra ports < <(python3 -c 'import socket
list = [socket.create_server(("127.0.0.1", 0)) for _ in range(13)]
print(*(s.getsockname()[1] for s in list))')
    zookeeper_port=${ports[0]}
    cat >zookeeper/zoo.cfg <<CFG
tickTime=500
dataDir=$PWD/zookeeper/data
clientPort=$zookeeper_port
clientPortAddress=127.0.0.1
admin.enableServer=false
CFG
    zookeeper_run
    cluster_hosts=
    for n in 1 2 3 4; do
        http_port[n]=${ports[n]}
        cluster_hosts+=${cluster_hosts:+,}127.0.0.1:${ports[n]}
        mkdir -p "node$n/data" "node$n/tmp"
        cat >"node$n/config.xml" <<XML
<yandex>
<logger><level>warning</level><log>$PWD/node$n/log</log><errorlog>$PWD/node$n/errors</errorlog></logger>
<http_port>${ports[n]}</http_port><tcp_port>${ports[n + 4]}</tcp_port>
<interserver_http_port>${ports[n + 8]}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host><max_connections>256</max_connections>
<path>$PWD/node$n/data/</path><tmp_path>$PWD/node$n/tmp/</tmp_path>
<users_config>$PWD/node$n/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
<zookeeper><node><host>127.0.0.1</host><port>$zookeeper_port</port></node>
<session_timeout_ms>4000</session_timeout_ms></zookeeper>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
<macros><shard>$(((n + 1) / 2))</shard><replica>node$n</replica></macros>
<remote_servers><four>
$(for s in 1 2; do
            echo "<shard><internal_replication>true</internal_replication>"
            for r in $((s * 2 - 1)) $((s * 2)); do
                echo "<replica><host>127.0.0.1</host><port>${ports[r + 4]}</port></replica>"
            done
            echo "</shard>"
        done)
</four></remote_servers>
</yandex>
XML
        cat >"node$n/users.xml" <<'XML'
<yandex><profiles><default></default></profiles><quotas><default></default></quotas><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users></yandex>
XML
        node_run "$n"
    done
}
