# SPDX-License-Identifier: Apache-2.0
cd "$FIXTURES/pprof"
for file in recursion.pb.gz unsymbolized.pb.gz empty.pb.gz; do "$ASSAY" info "$file"; echo; done
"$ASSAY" info cpu-labels.pb.gz | sed -n '/^labels/,$p'
echo "== json"
"$ASSAY" info --format json recursion.pb.gz | jq -S -c 'del(.start_ns)'
