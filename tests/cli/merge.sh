# SPDX-License-Identifier: Apache-2.0
# Merging adds up, also files of different formats and types.
cd "$FIXTURES"
"$ASSAY" merge pprof/recursion.pb.gz pprof/recursion.pb.gz pprof/recursion.pb.gz -o "$OLDPWD/m.pb.gz"
cd "$OLDPWD"
"$ASSAY" report m.pb.gz
"$ASSAY" merge "$FIXTURES/pprof/recursion.pb.gz" "$FIXTURES/man/stacks.folded" -o mixed.pb.gz
"$ASSAY" info --format json mixed.pb.gz | jq -c '[.types[] | [.type, .unit]]'
one=$("$ASSAY" info --format json "$FIXTURES/pprof/recursion.pb.gz" | jq '.types[0].total')
two=$("$ASSAY" info --format json "$FIXTURES/man/stacks.folded" | jq '.types[0].total')
"$ASSAY" info --format json mixed.pb.gz | jq --argjson sum $((one + two)) '.types[0].total == $sum'
echo "== the same bytes whenever it runs"
"$ASSAY" merge "$FIXTURES"/pprof/{cpu-labels,recursion,packed}.pb.gz -o 1.pb
"$ASSAY" merge "$FIXTURES"/pprof/{cpu-labels,recursion,packed}.pb.gz -o 2.pb
cmp 1.pb 2.pb && echo same
