# SPDX-License-Identifier: Apache-2.0
# Two seconds of each storm; tests/long has more of them.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
storm_kib=100000
declare -A threads_least=([bpf]=50+ [perf]=0+)

storm_spawn 500 2
storm_tree 500 64
storm_threads 10000
storm_swap 500
storm_exec 400
