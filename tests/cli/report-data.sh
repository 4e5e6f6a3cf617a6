# SPDX-License-Identifier: Apache-2.0
# JSON and CSV hold raw numbers, of every view.
cd "$FIXTURES/pprof"
echo "== csv"; "$ASSAY" report --format csv recursion.pb.gz
echo "== json"; "$ASSAY" report --format json recursion.pb.gz | jq -c '[.type,.unit,.total,.shown,.functions], (.rows[] | [.function,.flat,.cum])'
echo "== tree"; "$ASSAY" report --format json --tree recursion.pb.gz | jq -c '.rows | length, (.[:5][] | [.depth,.function,.total,.self])'
echo "== callers"; "$ASSAY" report --format csv --callers walk recursion.pb.gz
echo "== callees"; "$ASSAY" report --format json --callees walk recursion.pb.gz | jq -c '.callees_of, (.rows[] | [.function,.value])'
echo "== lines"; "$ASSAY" report --format json --lines inner inlines.pb.gz | jq -c '.rows[] | [.function,.line,.flat,.cum]'
echo "== no colour where there is no terminal"; "$ASSAY" report recursion.pb.gz | grep -c $'\x1b' || true
