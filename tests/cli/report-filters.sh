# SPDX-License-Identifier: Apache-2.0
# Filters: percentages stay those of the whole profile, and the heading says what was left.
cd "$FIXTURES/pprof"
echo "== focus"; "$ASSAY" report --focus '^even$' recursion.pb.gz
echo "== ignore"; "$ASSAY" report --ignore '^even$' recursion.pb.gz
echo "== hide"; "$ASSAY" report --hide '^walk$' recursion.pb.gz
echo "== nothing left"; "$ASSAY" report --focus nothing recursion.pb.gz
echo "== tag"; "$ASSAY" report --tag endpoint=/cart -n 3 cpu-labels.pb.gz | sed -n 1p
echo "== all tags must hold"; "$ASSAY" report --tag endpoint=/cart --tag 'endpoint!=/cart' cpu-labels.pb.gz
