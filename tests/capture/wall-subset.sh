# SPDX-License-Identifier: Apache-2.0
# At extreme rates of switches only some threads are followed, and then only in a part of the time. What
# they stand for is right within the standard errors that the profile has.
# Chance: three standard errors are exceeded now and then.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -pthread -o crowd "$subjects/crowd.c"
for share in 0.02 0.01; do
    ASSAY_WAITS_SHARE=$share "$ASSAY" record -q -m wall -o crowd.pb.gz -- ./crowd 300 5 >truth
    "$ASSAY" info crowd.pb.gz >info
    check "totals when waits may cost $share of the CPUs" python3 "$capture/subset.py" info <truth
done
# A subset, or else there was nothing to be wrong about: a starved machine has fewer switches.
check "not everything was measured" python3 "$capture/subset.py" info subset <truth
