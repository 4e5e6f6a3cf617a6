#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Just-in-time compiled code under `assay record`: functions of JavaScript by Node.js's maps and
# dumps, and of Java by the map that it writes at its end.
# Chance: when V8 and HotSpot compile a function, and so under which name it is sampled, is their
# choice.
# Toolchains: node

ran=
record() { "$ASSAY" record -q -F 499 -o recorded.pb.gz -- "$@" >output 2>errors; }
if ! record true; then
    cat errors
    echo "This user may not record here."
    exit 77
fi
# The function is there by name, with at least a tenth of the time in it, and no address has more.
has_function() {
    "$ASSAY" report --format csv --top 0 recorded.pb.gz >report.csv
    python3 - "$@" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open("report.csv")))
flat = {row["function"]: float(row["flat_percent"]) for row in rows}
for name in sys.argv[1:]:
    share = flat.get(name, 0)
    unnamed = max([flat[key] for key in flat if key.startswith("[jit ")], default=0)
    if share < 10 or unnamed > share:
        sys.exit(f"{name} has {share}% of the time, an address {unnamed}%: {list(flat)[:10]}")
PYTHON
}

if command -v node >/dev/null; then
    cat >hot.js <<'JS'
function heavy(n) { return n < 2 ? n : heavy(n - 1) + heavy(n - 2); }
let total = 0;
for (let i = 0; i < 60; i++) total += heavy(27);
console.log(process.pid, total);
JS
    for option in --perf-basic-prof --perf-prof; do
        record node "$option" hot.js
        rm -f "/tmp/perf-$(cut -d ' ' -f 1 output).map"
        has_function heavy
        ran=yes
    done
fi
if command -v javac >/dev/null &&
    [[ $(java -XX:+UnlockDiagnosticVMOptions -XX:+PrintFlagsFinal -version 2>&1) == \
        *DumpPerfMapAtExit* ]]; then
    cat >Hot.java <<'JAVA'
public class Hot {
    static int heavy(int n) { return n < 2 ? n : heavy(n - 1) + heavy(n - 2); }
    public static void main(String[] arguments) {
        long total = 0;
        for (int i = 0; i < 80; i++) total += heavy(32);
        System.out.println(ProcessHandle.current().pid() + " " + total);
    }
}
JAVA
    javac Hot.java
    record java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp . Hot
    rm -f "/tmp/perf-$(cut -d ' ' -f 1 output).map"
    has_function Hot.heavy
    ran=yes
fi
[ -n "$ran" ] || {
    echo "There is no Node.js and no Java here."
    exit 77
}
