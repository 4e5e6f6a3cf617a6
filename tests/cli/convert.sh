# SPDX-License-Identifier: Apache-2.0
# Conversions keep what the target can hold, and the total always.
in=$FIXTURES/pprof/cpu-labels.pb.gz
total() { "$ASSAY" info --format json "$1" | jq -c '[.format, (.types[] | select(.type == "samples") | .total)]'; }
total "$in"
for out in x.pb.gz x.pb x.otlp x.folded x.speedscope.json; do
    "$ASSAY" convert "$in" -o "$out"
    [ "$out" != x.folded ] || "$ASSAY" convert -t samples "$in" -o "$out"
    printf '%s ' "$out"; total "$out"
done
echo "== all the same functions, through every format that keeps types"
"$ASSAY" report -t samples --top 0 --format csv "$in" | cut -d, -f1,3,5 | LC_ALL=C sort >want
for out in x.pb.gz x.pb x.otlp x.folded x.speedscope.json; do
    "$ASSAY" report -t samples --top 0 --format csv "$out" | cut -d, -f1,3,5 | LC_ALL=C sort | cmp want - && echo "$out"
done
echo "== labels and lines survive where they can"
for out in x.pb.gz x.otlp; do
    "$ASSAY" info --format json "$out" | jq -c '[.labels[].key] | sort'
    "$ASSAY" report --lines 'main.(*item).walk' --format json "$out" | jq -c '[.rows[] | .line > 0] | unique'
done
echo "== times of single samples"
"$ASSAY" convert "$FIXTURES/man/perf.txt" -o times.otlp
"$ASSAY" convert times.otlp -o times.speedscope.json
jq '.profiles[0].samples | length' times.speedscope.json
grep -c 'cpu-clock' "$FIXTURES/man/perf.txt"
echo "== pipes"
"$ASSAY" convert - --to folded -t samples -o - <"$in" | "$ASSAY" info --format json - | jq -c '[.file, .format]'
echo "== by name, whatever the extension"
"$ASSAY" convert "$in" --to folded -o x.bin && "$ASSAY" info --format json x.bin | jq -r .format
head -c 2 x.pb.gz | od -An -tx1; head -c 1 x.pb | od -An -tx1
