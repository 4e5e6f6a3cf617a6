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

# Instructions per cycle, where both were counted.
cd "$OLDPWD"
cat >events.txt <<'END'
app 10/10 1.000000:        600 cycles:u:
	    401000 hot+0x10 (/bin/app)
	    402000 main+0x10 (/bin/app)

app 10/10 1.010000:        900 instructions:u:
	    401000 hot+0x10 (/bin/app)
	    402000 main+0x10 (/bin/app)

app 10/10 1.020000:        400 cycles:u:
	    402010 main+0x20 (/bin/app)

app 10/10 1.030000:        100 instructions:u:
	    403010 rest+0x20 (/bin/app)

END
"$ASSAY" report events.txt
"$ASSAY" report --format csv -t instructions events.txt
