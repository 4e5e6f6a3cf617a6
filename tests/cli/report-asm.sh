# SPDX-License-Identifier: Apache-2.0
# `report --asm` shows the instructions of a function, from the binary that the profile is of.
cat >hot.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static inline __attribute__((always_inline)) long known(long x)
{
    __asm__ volatile("movl $0x13572468, %%eax" ::: "eax");
    return x + 1;
}
__attribute__((noinline, cold)) long other(long x) { __asm__ volatile(""); return x; }
__attribute__((noinline)) long hot(long x)
{
    long y = known(x);
    return other(y) + 1;
}
__attribute__((noinline)) void spin(long n)
{
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}
int main(int argc, char **argv)
{
    if (argc > 1) spin(atol(argv[1]));
    return (int)hot(argc) & 1;
}
END
gcc -O1 -g -fcf-protection=none -Wl,--build-id -o hot hot.c
# The profile: 7 ms at the known instruction, which is inlined, 2 ms at another address within it, and
# 1 ms at hot's call of `other`.
cat >profile.py <<'END'
import os, struct, subprocess, sys
from protobuf import field, varint
program = os.path.abspath(sys.argv[1])
build_id = sys.argv[2]
code = open(sys.argv[1], "rb").read()
mark = code.index(b"\xb8\x68\x24\x57\x13")
call = code.index(b"\xe8", mark)
base = 0x7f1234560000
strings = ["", "cpu", "nanoseconds", "known", "hot", "other", os.path.abspath("hot.c"), program, build_id]
out = field(1, field(1, 1) + field(2, 2))
for locations, value in (((1,), 7000000), ((2,), 2000000), ((4, 3), 1000000)):
    ids = b"".join(varint(each) for each in locations)
    out += field(2, field(1, ids) + field(2, varint(value)))
page = mark & ~0xfff
out += field(3, field(1, 1) + field(2, base) + field(3, base + 0x100000) + field(4, page) + field(5, 7) + field(6, 8))
at = lambda offset: base + offset - page
line = lambda function, at_line: field(4, field(1, function) + field(2, at_line))
out += field(4, field(1, 1) + field(2, 1) + field(3, at(mark)) + line(1, 5) + line(2, 11))
out += field(4, field(1, 2) + field(2, 1) + field(3, at(mark + 2)) + line(1, 5) + line(2, 11))
out += field(4, field(1, 3) + field(2, 1) + field(3, at(call + 4)) + line(2, 12))
out += field(4, field(1, 4) + line(3, 8))
for id, name in ((1, 3), (2, 4), (3, 5)):
    out += field(5, field(1, id) + field(2, name) + field(4, 6))
for text in strings: out += field(6, text.encode())
sys.stdout.buffer.write(out)
END
build_id=$(readelf -n hot | sed -n 's/.*Build ID: //p')
PYTHONPATH="$ROOT/tests/server" python3 profile.py hot "$build_id" >hot.pb
rows() { "$ASSAY" report --asm "$1" --format json "${@:3}" "$2"; }
failing() { ! "$ASSAY" report --asm "$@" 2>&1 | sed "s|$PWD|HERE|g; s/$build_id/BUILD-ID/g; s/0x[0-9a-f]*/ADDRESS/g"; }

echo "== a known instruction, and the call"
rows hot hot.pb | jq -r '.rows[] | select(.cum > 0) | [.flat, .cum, .flat_percent, (.instruction | sub("0x[0-9a-f]+ <"; "ADDRESS <")), .function, .inlined, (.file | sub(".*/"; "")), .line, .source] | join(" | ")'
echo "== as text"
"$ASSAY" report --asm hot hot.pb | grep -E '13572468| in |<other>' | sed "s|$PWD|HERE|; s/, [0-9]* bytes/, N bytes/; s/0x[0-9a-f]* /ADDRESS /g; s/  */ /g"
"$ASSAY" report --asm hot hot.pb | sed -n 2p | xargs
echo "== as CSV"
"$ASSAY" report --asm hot --format csv hot.pb | sed -n 1p
echo "== each instruction is where objdump has it"
rows hot hot.pb | jq -r '.rows[].address' >ours
objdump -d --no-show-raw-insn hot | awk '/<hot>:/ { on = 1; next } on && /^$/ { on = 0 } on { sub(":", "", $1); print "0x" $1 }' >theirs
diff ours theirs && echo same
echo "== without debug information"
strip -g -o stripped hot && cp hot full && cp stripped hot
rows hot hot.pb | jq -c '[.rows[] | select(.flat > 0) | [.flat, .function, .file]]'
echo "== without symbols: the function's unwind entry has its bounds"
strip -o hot full
rows hot hot.pb | jq -c '[.rows[] | select(.flat > 0) | [.flat, .instruction, .function]]'
cp full hot

echo "== without a build ID it may be another build"
PYTHONPATH="$ROOT/tests/server" python3 profile.py hot "" >anonymous.pb
"$ASSAY" report --asm hot anonymous.pb | sed -n 1p | sed "s|$PWD|HERE|; s/, [0-9]* bytes/, N bytes/"

echo "== not the function that was meant"
failing known hot.pb
failing other hot.pb
failing nothing hot.pb
failing '(' hot.pb
failing hot --tree hot.pb
echo "== no addresses"
echo 'main;hot 3' >hot.folded
failing hot hot.folded
echo "== another build"
sed -i 's/+ 1;$/+ 2;/' hot.c
gcc -O1 -g -fcf-protection=none -Wl,--build-id -o hot hot.c
failing hot hot.pb | sed -E 's/[0-9a-f]{40}/OTHER-ID/'
echo "== missing, not a program, cut off, a pipe"
rm hot
failing hot hot.pb
echo text >hot
failing hot hot.pb
for bytes in 0 63 1000 4097; do
    head -c "$bytes" full >hot
    ! "$ASSAY" report --asm hot hot.pb >shown 2>said
    [ ! -s shown ] && [ "$(grep -c "^assay: hot.pb: $PWD/hot" said)" -eq 1 ] || cat shown said
done
rm hot && mkfifo hot
failing hot hot.pb
rm hot

echo "== a recording"
cp full hot
if "$ASSAY" record -q -F 499 -o spin.pb.gz -- ./hot 1000000000 2>said; then
    flat=$("$ASSAY" report -n 0 --format json spin.pb.gz | jq '.rows[] | select(.function == "spin").flat')
    rows spin spin.pb.gz | jq -r --argjson flat "$flat" '
        ([.rows[].flat] | add) as $sum |
        ([.rows[] | select(.instruction | test("^(dec|jne)")) | .flat] | add) as $loop |
        if $sum == $flat then "the instructions add up to the function" else "\($sum) instead of \($flat)" end,
        if $loop >= 0.98 * $sum then "all in the loop" else "\($loop) of \($sum) in the loop" end'
else
    printf '%s\n' "the instructions add up to the function" "all in the loop"
fi
