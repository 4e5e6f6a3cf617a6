# SPDX-License-Identifier: Apache-2.0
# Threads that live for less than the time between two samples.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
# shellcheck disable=SC2034 # for what is read below
storm_kib=150000
# shellcheck disable=SC2034
declare -A threads_least=([bpf]=200+ [perf]=0+)
storm_threads 60000
