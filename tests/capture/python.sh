# SPDX-License-Identifier: Apache-2.0
# Chance: shares of two thousand samples are compared, within four standard deviations.
# Python frames, with every interpreter that is here: shares of time, and frames of every kind.
. "$ROOT/tests/capture/common.bash"
need python3 gcc
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "Python frames take BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

tested=0
while read -r version program; do
    minor=${version#python3.}
    minor=${minor%%.*}
    [[ $version == python3.* && $minor -ge 8 && $minor -le 14 ]] || continue
    tested=$((tested + 1))
    "$ASSAY" record -q -F 1999 -o shares.pb.gz -- "$program" "$subjects/shares_of.py" 1 >truth
    check "$version: shares" python3 "$capture/python_frames.py" shares shares.pb.gz 2 <truth
    "$ASSAY" record -F 999 -o many.pb.gz -- "$program" "$subjects/many_frames.py" 0.8 2>said
    sed 's/^/# /' said
    check "$version: frames of every kind" python3 "$capture/python_frames.py" many many.pb.gz
    [ "$tested" = 1 ] || continue # the same in each
    "$ASSAY" record -q --interpreter-frames -F 999 -o native.pb.gz -- "$program" "$subjects/shares_of.py" 0.3 >truth
    check "$version: interpreter frames on demand" \
        python3 "$capture/python_frames.py" native native.pb.gz
done < <(bash "$ROOT/tests/toolchains.sh" python3)
[ "$tested" -gt 0 ] || skip_all "There is no Python from 3.8 to 3.14 here."

# A program that forges the interpreter's structures gets its native frames, and nobody comes to harm.
gcc -O1 -rdynamic -o forged "$subjects/forged_python.c" -lpthread
for how in 0 1 2 3 4 5; do
    check "forged structures: $how" "$ASSAY" record -F 1999 -o forged.pb.gz -- ./forged "$how" 0.15
    check "forged structures: $how, its stacks" \
        python3 "$capture/python_frames.py" forged forged.pb.gz
done
