# SPDX-License-Identifier: Apache-2.0
# Two seconds of each storm; tests/long has more of them.
# Chance: how many processes of a storm live long enough to be sampled differs from run to run.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
# shellcheck disable=SC2034 # for what is read below
storm_kib=100000
# shellcheck disable=SC2034
declare -A threads_least=([bpf]=50+ [perf]=0+)

storm_spawn 500 2
storm_tree 500 64
storm_threads 10000
storm_swap 500
storm_exec 400
