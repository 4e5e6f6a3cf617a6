# SPDX-License-Identifier: Apache-2.0
# Threads that live for less than the time between two samples.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
storm_kib=150000
declare -A threads_least=([bpf]=200+ [perf]=0+)
storm_threads 60000
