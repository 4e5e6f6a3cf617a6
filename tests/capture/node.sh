# SPDX-License-Identifier: Apache-2.0
# Chance: shares of two thousand samples are compared, within four standard deviations.
# JavaScript functions of Node.js, with every version that is here, without any flag: shares of time,
# in code that is interpreted, and as it comes.
. "$ROOT/tests/capture/common.bash"
need python3 node
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "JavaScript frames take BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

tested=0
while read -r version program; do
    major=${version#node}
    major=${major%%.*}
    [[ $version == node* && $major -ge 16 ]] || continue
    # A build of a distribution may not export what debuggers need.
    file=$(ldd "$program" 2>/dev/null | sed -n 's/.*libnode.* => \(.*\) (.*/\1/p')
    if ! grep -a v8dbg_class_JSFunction__shared "${file:-$(readlink -f "$program")}" >/dev/null; then
        skip_case "$version" "It has no constants for debuggers."
        continue
    fi
    tested=$((tested + 1))
    for how in "" --no-opt --jitless; do
        # shellcheck disable=SC2086 # no flag is no word
        "$ASSAY" record -q -F 1999 -o shares.pb.gz -- "$program" $how "$subjects/node_shares.js" 1 >truth
        check "$version ${how:-as it comes}: shares" \
            python3 "$capture/node_frames.py" shares.pb.gz 2 <truth
    done
    rm -f ./*.cpuprofile
    "$ASSAY" record -q -F 999 -o lines.pb.gz -- "$program" "$subjects/node_shares.js" 0.5 >truth
    "$program" --cpu-prof --cpu-prof-interval 500 "$subjects/node_shares.js" 0.5 >truth
    check "$version: lines of functions, beside --cpu-prof" \
        python3 "$capture/node_frames.py" lines lines.pb.gz ./*.cpuprofile
done < <(bash "$ROOT/tests/toolchains.sh" node)
[ "$tested" -gt 0 ] || skip_all "There is no Node.js from 16 on with constants for debuggers here."
