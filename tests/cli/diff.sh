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
echo "== pictures"
"$ASSAY" diff base.folded new.folded -o d.svg && grep -c '<svg' d.svg && python3 -c "import xml.dom.minidom as m; m.parse('d.svg')"
"$ASSAY" diff base.folded new.folded -o d.html && grep -o '"kind":"diff"' d.html
