# SPDX-License-Identifier: Apache-2.0
# Chance: shares of two thousand samples are compared, within four standard deviations.
# Ruby frames: shares of time, frames of every kind, lines, and a program that forges the structures.
. "$ROOT/tests/capture/common.bash"
need python3 gcc
command -v ruby >/dev/null || skip_all "There is no Ruby here (the package ruby)."
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "Ruby frames take BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

version=$(ruby -e 'puts RUBY_VERSION')
case $version in
3.[1-4].*) ;;
*) skip_all "Ruby $version is not supported." ;;
esac
"$ASSAY" record -q -F 999 -o shares.pb.gz -- ruby "$subjects/shares_of.rb" 2 >truth
check "Ruby $version: shares" \
    python3 "$capture/script_frames.py" shares shares.pb.gz 2 'shares_of.rb:<main>' <truth
"$ASSAY" report -f json --lines shares_of.rb:spin shares.pb.gz >lines.json
check "Ruby $version: lines" jq -e --argjson first "$(grep -n '^def spin' "$subjects/shares_of.rb" | cut -d: -f1)" \
    '[.. | objects | select(.cum? and (.cum | numbers) > 0 and .line?) | .line] | length > 0 and all(. > $first and . < $first + 10)' lines.json
"$ASSAY" record -q -F 499 -o many.pb.gz -- ruby "$subjects/many_frames.rb" 1.5
check "Ruby $version: frames of every kind" python3 "$capture/script_frames.py" many many.pb.gz 701 \
    recurse called_back raising in_thread in_child thrown_away method_missing
"$ASSAY" record -q --interpreter-frames -F 499 -o native.pb.gz -- ruby "$subjects/shares_of.rb" 0.5 >truth
check "Ruby $version: interpreter frames on demand" grep -q rb_vm_exec <("$ASSAY" convert --to folded -o - native.pb.gz)

# A program that forges the interpreter's structures gets its native frames, and nobody comes to harm.
gcc -O1 -rdynamic -o forged "$subjects/forged_ruby.c"
for how in 0 1 2 3 4; do
    check "forged structures: $how" "$ASSAY" record -F 1999 -o forged.pb.gz -- ./forged "$how" 0.15
    check "forged structures: $how, its stacks" python3 "$capture/script_frames.py" forged forged.pb.gz
done
