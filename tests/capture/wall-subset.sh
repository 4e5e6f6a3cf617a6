# SPDX-License-Identifier: Apache-2.0
# At extreme rates of switches only a part of the time is measured, and then some threads alone. What
# they stand for is right within the standard errors that the profile has.
# Chance: three standard errors are exceeded now and then.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -pthread -o states "$subjects/states.c"
ASSAY_WAITS_SHARE=0.9 "$ASSAY" record -q -m wall -o all.pb.gz -- ./states 2 >truth
check "states within a limit that is far away" python3 "$capture/states.py" all.pb.gz <truth
"$ASSAY" info all.pb.gz >info
check "... are exact" sh -c 'grep -q "standard error 0.000000" info && ! grep "standard error" info | grep -v "standard error 0.0000"'

gcc -O2 -pthread -o crowd "$subjects/crowd.c"
for share in 0.02 0.01; do
    ASSAY_WAITS_SHARE=$share "$ASSAY" record -q -m wall -o crowd.pb.gz -- ./crowd 300 5 >truth
    "$ASSAY" info crowd.pb.gz >info
    check "totals when waits may cost $share of the CPUs" python3 "$capture/subset.py" info <truth
done
# A subset, or else there was nothing to be wrong about: a starved machine has fewer switches.
check "not everything was measured" python3 "$capture/subset.py" info subset <truth
