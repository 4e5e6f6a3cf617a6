# SPDX-License-Identifier: Apache-2.0
# Ruby's stackprof: each function's samples, with and without what it calls, as stackprof's own report
# has them.
command -v stackprof >/dev/null || { echo "There is no stackprof here." && exit 77; }
cat >load.rb <<'END'
require 'stackprof'
def inner(n) s = 0; i = 0; while i < n; s += i * i; i += 1; end; s end
def other(n) a = []; n.times { |i| a << i.to_s }; a.size end
def again(n) n == 0 ? inner(100_000) : again(n - 1) end
def used() = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
def both() inner(200_000); other(20_000); again(3) end
StackProf.run(mode: :cpu, interval: 1000, raw: true, out: 'own.dump') { both until used > 0.3 }
END
ruby load.rb
stackprof --json own.dump >own.json
stackprof --text --limit 1000 own.dump >theirs.txt
sed -n 's/^ *Samples: \([0-9]*\).*/total \1/p' theirs.txt >expected
# Functions of one name in several files are one to assay. Here that is <main>, with the same numbers.
sed -nE 's/^ *([0-9]+) +\([^)]*\) +([0-9]+) +\([^)]*\) +(.*[^ ]) *$/\3 \2 \1/p' theirs.txt | sort -u >>expected
"$ASSAY" report -n 0 --original-names --format json -t samples own.json >report.json
{ jq -r '"total \(.total)"' report.json && jq -r '.rows[] | "\(.function) \(.flat) \(.cum)"' report.json | sort; } >got
cat got
diff expected got
jq -e '.total > 20' report.json
