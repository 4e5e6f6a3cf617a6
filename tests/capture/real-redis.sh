# SPDX-License-Identifier: Apache-2.0
# Redis under redis-benchmark.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
. "$capture/servers.bash"
need python3 readelf redis-benchmark
have_redis || skip_all "There is no Redis server here."
start_redis socket
load() {
    # In the process group of the load, which ends as one.
    timeout --foreground "$1" redis-benchmark -s socket -c 20 -l -q -t set,get,lpush,lrange_100,zadd,mset || [ $? -eq 124 ]
}

options=(--whole 99)
! has_symbols "$(redis_program)" || options+=(--named 95)
real Redis "$server" "${options[@]}"
