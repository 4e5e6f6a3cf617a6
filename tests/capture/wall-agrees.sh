# SPDX-License-Identifier: Apache-2.0
# CPU time by samples and running time by the kernel's accounts agree, and at a high rate of context
# switches the time of waits is divided among stacks without bias.
# Chance: both are samples.
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -g -pthread -o subject "$subjects/switches.c"
"$ASSAY" record -q -F 999 -m cpu,wall -o both.pb.gz -- ./subject busy 4 >truth
check "CPU and wall agree on running time" python3 "$capture/agrees.py" busy both.pb.gz <truth
"$ASSAY" record -q -m wall -o switches.pb.gz -- ./subject switch 5 >truth
check "waits of two kinds, at a high rate" python3 "$capture/agrees.py" switch switches.pb.gz <truth
