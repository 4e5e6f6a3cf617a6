# SPDX-License-Identifier: Apache-2.0
# Chance: shares of two thousand samples are compared, within four standard deviations.
# Java frames, with every virtual machine that is here, without any flag: shares of time in
# interpreted and compiled code, and frames of every kind.
. "$ROOT/tests/capture/common.bash"
need python3 java javac gcc
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "Java frames take BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

javac -nowarn -d . -source 8 -target 8 "$subjects/JavaShares.java" "$subjects/JavaMany.java" 2>/dev/null ||
    skip_all "javac cannot compile for Java 8."

tested=0
while read -r version program; do
    tested=$((tested + 1))
    # In this order: as it comes, which is mostly code of the second compiler, by the interpreter alone,
    # and by the first compiler.
    for how in "" -Xint -XX:TieredStopAtLevel=1; do
        # shellcheck disable=SC2086 # no flag is no word
        "$ASSAY" record -q -F 1999 -o shares.pb.gz -- "$program" $how -cp . JavaShares 1 >truth
        check "$version ${how:-as it comes}: shares" \
            python3 "$capture/java_frames.py" shares shares.pb.gz 2 <truth
    done
    # Stacks that were copied are walked by the same steps.
    if [ "$tested" = 1 ] && [[ " ${samplers[*]} " == *" perf "* ]]; then
        ASSAY_SAMPLER=perf "$ASSAY" record -q -F 999 -o shares.pb.gz -- "$program" -cp . JavaShares 2 >truth
        check "$version by perf events: shares" \
            python3 "$capture/java_frames.py" shares shares.pb.gz 2 <truth
    fi
    "$ASSAY" record -F 999 -o many.pb.gz -- "$program" -Xmx128m -cp . JavaMany 2 2>said
    sed 's/^/# /' said
    check "$version: frames of every kind" python3 "$capture/java_frames.py" many many.pb.gz
done < <(bash "$ROOT/tests/toolchains.sh" java)
[ "$tested" -gt 0 ] || skip_all "There is no HotSpot virtual machine from 11 to 25 here."

# A program that forges the machine's structures gets its native frames, and nobody comes to harm. It
# has the older kind of hash table for its symbols, as some virtual machines have.
gcc -O1 -rdynamic -Wl,--hash-style=sysv -o forged "$subjects/forged_hotspot.c"
for how in 0 1 2 3 4 5; do
    check "forged structures: $how" "$ASSAY" record -F 1999 -o forged.pb.gz -- ./forged "$how" 0.15
    check "forged structures: $how, its stacks" \
        python3 "$capture/java_frames.py" forged forged.pb.gz "$how"
done
