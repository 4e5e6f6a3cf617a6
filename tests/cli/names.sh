# SPDX-License-Identifier: Apache-2.0
# Generated and mangled names are one function in files of all kinds, and come back on request.
cat >one.folded <<'STACKS'
a.Shop$$Lambda$92+0x00007f4d2c0b1a30.172032696.run;slices.pdqsortOrdered[go.shape.string] 3
a.Shop$$Lambda$92+0x00007f4d2c0b1a30.172032696.run;_ZN4shop4sortEv 4
STACKS
cat >two.folded <<'STACKS'
a.Shop$$Lambda$14/1225373914.run;slices.pdqsortOrdered[go.shape.int] 3
a.Shop$$Lambda$14/1225373914.run;_ZN4shop4sortEv 4
STACKS
functions() { "$ASSAY" report --top 0 --format csv "$@" | cut -d, -f1,3,5 | LC_ALL=C sort; }
echo "== one function each"
functions one.folded two.folded
echo "== no difference"
"$ASSAY" diff one.folded two.folded --format json | jq -c '[.rows[] | select(.flat_change != 0)] | length'
"$ASSAY" diff one.folded two.folded --original-names --format json | jq -c '.rows | length'
echo "== the original comes back from files that keep it"
for out in x.pb.gz x.otlp; do
    "$ASSAY" convert one.folded -o "$out"
    functions "$out" | cmp - <(functions one.folded) &&
        functions --original-names "$out" | cmp - <(functions --original-names one.folded) && echo "$out"
done
functions --original-names x.pb.gz
echo "== filters match what is shown"
functions --focus 'shop::sort' one.folded | wc -l
functions --original-names --focus 'shop::sort' one.folded | wc -l
