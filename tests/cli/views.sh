# SPDX-License-Identifier: Apache-2.0
# Samples by process, thread, binary and label; the largest values of labels.
cd "$FIXTURES/perf-data"
quiet() { "$ASSAY" "$@" 2>/dev/null; }
echo "== report --by"
quiet report file.data --by comm,pid -t samples --format csv | cut -d, -f1,3,5-
quiet report file.data --by binary -t samples --format csv | cut -d, -f1,5
quiet report file.data --by nothing -t samples --format csv | cut -d, -f1,5
quiet report file.data --by comm --tree -t samples | sed -n 's/^.*· comm/comm/p'
echo "== flame --by"
quiet flame file.data --by comm,tid -o "$OLDPWD/x.svg"
grep -oE '<title>(comm|tid) [a-z0-9 ]*' "$OLDPWD/x.svg" | sort -u
echo "== wrong"
"$ASSAY" report file.data --by , 2>&1 | head -1 || true
"$ASSAY" flame file.data --by comm, -o x.svg 2>&1 | head -1 || true
echo "== info"
quiet info file.data | sed -n '/^labels/,$p'
quiet info --format json file.data | jq -c '.labels[0]'
echo "== did you mean"
for words in "repotr x" "stak" "xyzzy" "report --fokus x y" "record --dur 1 -- true" "report --zzz x"; do
    # shellcheck disable=SC2086 # each is several words
    "$ASSAY" $words 2>&1 | head -1 || true
done
echo "== record"
"$ASSAY" record -d 0 -- true 2>&1 | head -1 || true
"$ASSAY" record -p 1 -t 1 2>&1 | head -1 || true
"$ASSAY" record -t nobody 2>&1 | head -1 || true
"$ASSAY" record -t "" 2>&1 | head -1 || true
