# SPDX-License-Identifier: Apache-2.0
# Chance: shares of a hundred samples are compared, within four standard deviations.
# Python frames without privilege: by ptrace, with every interpreter that is here, and of processes
# that were forked.
export ASSAY_SAMPLERS=ptrace
. "$ROOT/tests/capture/common.bash"
need python3
export ASSAY_SAMPLER=ptrace

tested=0
declare -A seen
while read -r version program; do
    minor=${version#python3.}
    minor=${minor%%.*}
    [[ $version == python3.* && $minor -ge 8 && $minor -le 14 ]] || continue
    [ -z "${seen[$minor]:-}" ] || continue # by minor version, the structures are the same
    seen[$minor]=yes
    tested=$((tested + 1))
    "$ASSAY" record -q -o shares.pb.gz -- "$program" "$subjects/shares_of.py" 1 >truth
    check "$version: shares" python3 "$capture/python_frames.py" few shares.pb.gz 20 <truth
done < <(bash "$ROOT/tests/toolchains.sh" python3)
[ "$tested" -gt 0 ] || skip_all "There is no Python from 3.8 to 3.14 here."

"$ASSAY" record -q -o forked.pb.gz -- python3 "$subjects/python_forks.py" 3 0.4
check "forked processes" python3 "$capture/python_frames.py" forked forked.pb.gz 3

gcc -O1 -rdynamic -o forged "$subjects/forged_python.c" -lpthread
for how in 0 2 4; do
    check "forged structures: $how" "$ASSAY" record -o forged.pb.gz -- ./forged "$how" 0.2
    check "forged structures: $how, its stacks" \
        python3 "$capture/python_frames.py" forged forged.pb.gz
done
