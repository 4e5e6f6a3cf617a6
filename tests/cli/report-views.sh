# SPDX-License-Identifier: Apache-2.0
# Every view of `assay report` in text, on small profiles with known answers.
cd "$FIXTURES/pprof"
echo "== top"; "$ASSAY" report recursion.pb.gz
echo "== cum, limited"; "$ASSAY" report --cum -n 2 recursion.pb.gz
echo "== tree"; "$ASSAY" report --tree recursion.pb.gz
echo "== tree, large branches only"; "$ASSAY" report --tree --min 40 recursion.pb.gz
echo "== callers"; "$ASSAY" report --callers walk recursion.pb.gz
echo "== callees"; "$ASSAY" report --callees main recursion.pb.gz
echo "== lines"; "$ASSAY" report --lines inner inlines.pb.gz
echo "== other type"; "$ASSAY" report -t samples/count -n 1 recursion.pb.gz
echo "== type by number"; "$ASSAY" report -t 0 -n 1 recursion.pb.gz
echo "== several files"; "$ASSAY" report -n 1 recursion.pb.gz recursion.pb.gz
echo "== standard input"; "$ASSAY" report -n 1 - <recursion.pb.gz
