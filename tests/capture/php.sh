# SPDX-License-Identifier: Apache-2.0
# Chance: shares of two thousand samples are compared, within four standard deviations.
# PHP frames: shares of time, frames of every kind, lines, and a program that forges the structures.
. "$ROOT/tests/capture/common.bash"
need python3 gcc
command -v php >/dev/null || skip_all "There is no PHP here (the package php-cli)."
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "PHP frames take BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

version=$(php -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION, PHP_ZTS ? " thread-safe" : "";')
case $version in
8.[0-5]) ;;
*) skip_all "PHP $version is not supported." ;;
esac
"$ASSAY" record -q -F 999 -o shares.pb.gz -- php "$subjects/shares_of.php" 2 >truth
check "PHP $version: shares" \
    python3 "$capture/script_frames.py" shares shares.pb.gz 2 'shares_of.php:{main}' <truth
check "PHP $version: a method's class" grep -q 'Worker::ten;spin' <("$ASSAY" convert --to folded -o - shares.pb.gz)
"$ASSAY" report -f json --lines spin shares.pb.gz >lines.json
check "PHP $version: lines" jq -e --argjson first "$(grep -n '^function spin' "$subjects/shares_of.php" | cut -d: -f1)" \
    '[.. | objects | select(.cum? and (.cum | numbers) > 0 and .line?) | .line] | length > 0 and all(. > $first and . < $first + 8)' lines.json
"$ASSAY" record -q -F 499 -o many.pb.gz -- php "$subjects/many_frames.php" 1.5
check "PHP $version: frames of every kind" python3 "$capture/script_frames.py" many many.pb.gz 701 \
    recurse called_back usort raising __destruct '{closure}' thrown_away
"$ASSAY" record -q --interpreter-frames -F 499 -o native.pb.gz -- php "$subjects/shares_of.php" 0.5 >truth
check "PHP $version: interpreter frames on demand" grep -q execute_ex <("$ASSAY" convert --to folded -o - native.pb.gz)

# A program that forges the interpreter's structures gets its native frames, and nobody comes to harm.
gcc -O1 -rdynamic -o forged "$subjects/forged_php.c"
for how in 0 1 2 3 4; do
    check "forged structures: $how" "$ASSAY" record -F 1999 -o forged.pb.gz -- ./forged "$how" 0.15
    check "forged structures: $how, its stacks" python3 "$capture/script_frames.py" forged forged.pb.gz
done
