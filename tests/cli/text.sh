# SPDX-License-Identifier: Apache-2.0
# Text that is not quite right: what can be read is read, and the rest is reported.
show() { "$ASSAY" report --top 0 --format csv "$@" 2>error.txt | cut -d, -f1,5; cat error.txt; }
echo "== bad lines"
printf 'main;a 3\nno count\n// note\nmain;b 4\n' >bad.folded
show bad.folded
show bad.folded bad.folded | tail -n 2
echo "== UTF-16"
printf 'main;gr\303\266\303\237e 3\n' | python3 -c 'import sys; sys.stdout.buffer.write(sys.stdin.buffer.read().decode().encode("utf-16"))' >wide.folded
show wide.folded
echo "== nothing but a header"
printf '# ========\n# captured on : today\n# perf version : 6.1\n' >header.txt
show header.txt
printf 'java 1 1.0: cycles:\n\n' >empty-stacks.txt
show empty-stacks.txt
echo "== massif's sizes of stacks"
printf 'desc: --stacks=yes\ncmd: ./x\ntime_unit: i\nsnapshot=0\ntime=7\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=3264\nheap_tree=peak\nn0: 0 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n' >stacks.massif
show stacks.massif
echo "== frames without blanks, two events without periods"
printf 'java 8 cycles:\nffffffff81 wait ([kernel.kallsyms])\n7f72 _ZN4shop4sellEv+0x12 (/lib/libshop.so)\n\njava 8 faults:\n7f72 _ZN4shop4sellEv+0x12 (/lib/libshop.so)\n' >trimmed.txt
"$ASSAY" info --format json trimmed.txt | jq -c '[.types[] | [.type, .unit, .total]]'
show trimmed.txt
echo "== threads"
"$ASSAY" info --format json "$FIXTURES/gperftools/threads.txt" | jq -c '[.format, .types[0].type, .types[0].total]'
echo "== files of others"
printf 'PK\003\004xxxx' >x.zip
printf '{"snapshot":{"meta":{"node_fields":["type"]}}}' >x.json
printf 'Weight\tSelf Weight\t\tSymbol Name\n4.9 s  99%%\t-\t \tmain\n' >instruments.txt
printf '{\n  "dhatFileVersion": 2,\n  "mode": "heap"}' >dhat.json
printf '{\n"program": "p", "cost_centres": []}' >ghc.prof
printf '{"type": "attached_probes", "data": {"probes": 2}}\n\n{"type": "map", "data": {"@": {}}}\n' >bpftrace.json
printf '*version\n3\ndata-file-overflow=false\nclock=dual\n' >art.trace
printf 'QPERFSTREAM\000\023' >x.perfparser
printf '\357\273\277Level,Function Name,Number of Calls,Elapsed Inclusive Time %%,\n' >vsprof.csv
for file in x.zip x.json instruments.txt dhat.json ghc.prof bpftrace.json art.trace x.perfparser vsprof.csv; do
    "$ASSAY" report "$file" 2>&1 && exit 1
done
true
