# SPDX-License-Identifier: Apache-2.0
# Differences: the planted regression comes first, and each normalisation does what it says.
cat >base.folded <<'END'
main;parse 40
main;render 50
main;gone 10
END
cat >new.folded <<'END'
main;parse 120
main;render 60
main;fresh 20
END
echo "== by total"; "$ASSAY" diff base.folded new.folded
echo "== none"; "$ASSAY" diff --normalize none base.folded new.folded
echo "== csv, the two ends"; "$ASSAY" diff --normalize none -n 2 --format csv base.folded new.folded
echo "== json"; "$ASSAY" diff --format json base.folded new.folded | jq -c '[.type,.normalize,.scale,.base_total,.new_total], (.rows[] | [.function,.flat_change,.cum_change])'
echo "== a profile against itself"; "$ASSAY" diff --format json new.folded new.folded | jq -c '[.rows[].flat_change] | unique'
echo "== duration"
"$ASSAY" diff --normalize duration base.folded new.folded 2>&1 || echo "exit $?"
"$ASSAY" diff --normalize duration --format json "$FIXTURES/man/base.pb.gz" "$FIXTURES/man/new.pb.gz" | jq -r .normalize
echo "== the planted regression"
"$ASSAY" diff --cum --format json "$FIXTURES/man/base.pb.gz" "$FIXTURES/man/new.pb.gz" | jq '[.rows[:8][].function] | index("main.escapeSlow") != null'
echo "== what is certain, in a table and in pictures"
for number in $(seq 20); do echo "main;f$number 1000"; done >steady.folded
sed 's/f7 1000/f7 1500/; s/f8 1000/f8 1110/' steady.folded >slow.folded
"$ASSAY" diff steady.folded slow.folded --normalize none --base-requests 10 --new-requests 15 -n 2 -f json |
    jq -c '.rows[] | [.function,.verdict,.cause]'
"$ASSAY" diff steady.folded slow.folded -n 1 --format csv --normalize none --base-requests 10 --new-requests 10 | cut -d, -f1,8-10
"$ASSAY" diff steady.folded slow.folded -o judged.html --normalize requests --base-requests 10 --new-requests 20
grep -o '"scale":.*' judged.html
sed 's/"self":{[^}]*}//g' judged.html | grep -o '"verdict":"[a-z]*"' | sort | uniq -c | tr -s ' '
"$ASSAY" diff steady.folded slow.folded -o judged.svg && grep -o 'grey is not certain to have changed' judged.svg
echo "== negative values have no interval"
printf 'main;a 5\nmain;b -3\nmain;c 10\n' >before.folded
printf 'main;a 15\nmain;b -13\nmain;c 10\n' >after.folded
"$ASSAY" diff before.folded after.folded --normalize none --format csv | cut -d, -f1,5-8,14
"$ASSAY" diff before.folded after.folded --normalize none --format json | jq -c '.rows[] | select(.function == "b") | [.low,.high,.p]'
echo "== pictures"
"$ASSAY" diff base.folded new.folded -o d.svg && grep -c '<svg' d.svg && python3 -c "import xml.dom.minidom as m; m.parse('d.svg')"
"$ASSAY" diff base.folded new.folded -o d.html && grep -o '"kind":"diff"' d.html
