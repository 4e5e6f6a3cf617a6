# SPDX-License-Identifier: Apache-2.0
# Instructions on the page of `assay view`: the same as those of `report --asm`, for one exact name.
type curl gcc python3 >/dev/null || { echo "curl, gcc or python3 is missing."; exit 77; }
cat >spin.c <<'EOF'
#include <stdlib.h>
__attribute__((noinline)) void spin(long n)
{
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}
int main(int argc, char **argv)
{
    for (int i = 0; i < 100; i++) spin(atol(argv[argc - 1]));
    return 0;
}
EOF
gcc -O1 -g -fcf-protection=none -Wl,--build-id -o spin spin.c
cat >profile.py <<'EOF'
# Samples of ./spin at its loop, as perf script and a mapping would say it: pprof with addresses.
import os, subprocess, sys
from protobuf import field, varint
path = os.path.abspath("spin")
notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True).stdout
build_id = notes.split("Build ID: ")[1].split()[0]
symbols = subprocess.run(["nm", path], capture_output=True, text=True).stdout
spin = int(next(l for l in symbols.splitlines() if l.endswith(" T spin")).split()[0], 16)
strings = ["", "cpu", "nanoseconds", "samples", "count", "spin", path, build_id]
out = field(1, field(1, 3) + field(2, 4)) + field(1, field(1, 1) + field(2, 2))
out += field(2, field(1, varint(1)) + field(2, varint(3) + varint(9000000)))
base = 0x7f1234560000
out += field(3, field(1, 1) + field(2, base) + field(3, base + 0x100000) + field(5, 6) + field(6, 7))
out += field(4, field(1, 1) + field(2, 1) + field(3, base + spin) + field(4, field(1, 1)))
out += field(5, field(1, 1) + field(2, 5))
for text in strings: out += field(6, text.encode())
open("spin.pb", "wb").write(out)
EOF
PYTHONPATH="$ROOT/tests/server" python3 profile.py
child=
trap '[ -z "$child" ] || kill -9 "$child" 2>/dev/null || true' EXIT
: >address.txt
"$ASSAY" view spin.pb "$ROOT/tests/fixtures/man/cpu.pb.gz" >address.txt &
child=$!
tries=0
until [ -s address.txt ]; do
    [ $((tries += 1)) -lt 1200 ] && kill -0 "$child"
    sleep 0.05
done
address=$(cat address.txt)
base=${address%/view/*} secret=${address##*/}
get() { curl -sS -w '%{stderr}%{http_code}\n' -H "Authorization: Bearer $secret" "$base/api/v1/view/assembly/$1" 2>&1; }

echo "== as the report has it"
get '0?function=spin&type=cpu' >page.txt
"$ASSAY" report --asm spin --sample-type cpu --format json spin.pb >report.json
python3 - <<'EOF'
import json
text, code = open("page.txt").read().rstrip().rsplit("\n", 1)
page, report = json.loads(text), json.load(open("report.json"))
print(code, page["rows"] == report["rows"], page["type"], page["total"], page["functions"], page["read"], page["lost"])
print([(r["flat"], r["function"]) for r in page["rows"] if r["flat"]])
EOF
echo "== another type"
get '0?function=spin&type=samples' | head -1 | cut -c 1-70
echo "== not there"
get '0?function=spi'
get '0'
get '7?function=spin'
get '1?function=main.fibonacci' | sed 's/main.fibonacci/FUNCTION/'
curl -sS -o /dev/null -w '%{http_code}\n' "$base/api/v1/view/assembly/0?function=spin"
kill -INT "$child" && wait "$child" && echo "ended with $?"
child=
