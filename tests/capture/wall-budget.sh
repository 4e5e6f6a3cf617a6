# SPDX-License-Identifier: Apache-2.0
# Programs that follow context switches take no more of the CPUs than they may, by the kernel's accounts,
# from the moment on at which many begin.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -pthread -o crowd "$subjects/crowd.c"
check "what following switches costs" python3 "$capture/wall_budget.py" "$ASSAY" 0.003 14 ./crowd 50 16
