# SPDX-License-Identifier: Apache-2.0
# Redis under redis-benchmark.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
need python3 readelf redis-benchmark
# Debian's tools bring the server along under another name.
server=$(command -v redis-server || command -v redis-check-rdb) || skip_all "There is no Redis server here."

(exec -a redis-server "$server" --port 0 --unixsocket "$PWD/socket" --save '' --appendonly no) \
    >redis.said 2>&1 &
pid=$!
started+=("$pid")
wait_until 20 test -S socket || { cat redis.said && exit 1; }
load() {
    timeout "$1" redis-benchmark -s socket -c 20 -l -q -t set,get,lpush,lrange_100,zadd,mset || [ $? -eq 124 ]
}

options=(--whole 99)
! has_symbols "$server" || options+=(--named 95)
real Redis "$pid" "${options[@]}"
