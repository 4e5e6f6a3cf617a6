# SPDX-License-Identifier: Apache-2.0
# Symbol indexes: what is made, what is answered, what is refused.
command -v cc >/dev/null || {
    echo "There is no C compiler here."
    exit 77
}
cat >small.c <<'C'
static inline __attribute__((always_inline)) int twice(volatile int *n) { return *n + *n; }
__attribute__((noinline)) int fourfold(volatile int *n)
{
    return 2 *
        twice(n);
}
int main(void) { volatile int n = 3; return fourfold(&n) != 12; }
C
# Without a landing pad the first instruction is the inlined one, whatever the compiler's default.
cc -g -O2 -fcf-protection=none -Wl,--build-id=0xfeed -o small small.c
"$ASSAY" debuginfo index small 2>said
sed -n 's/^assay: //; 1p' said
address=$(nm small | sed -n 's/ T fourfold$//p')
"$ASSAY" debuginfo look-up small.symbols "$address" >answer
cut -f 2- answer | sed "s#$PWD/##"
# The same by offset, from standard input, as JSON: in a position-independent program both agree.
read -r offset bias < <(readelf -lW small | awk '$1 == "LOAD" && /R E/ { print $2, $3 }')
printf '%x\n' $((0x$address - bias + offset)) >offsets
"$ASSAY" debuginfo look-up --offsets --format json small.symbols <offsets |
    jq -c '.[0].frames[] | [.function, .inlined, .line]'
echo "== nothing known"
"$ASSAY" debuginfo look-up small.symbols 0 ffffffffffffffff
echo "== refused"
refused() { ! "$ASSAY" debuginfo "$@" 2>&1 || echo "not refused: $*"; }
refused look-up small 1 || :
refused look-up small.symbols wrong
refused index small.c
refused index missing
refused frobnicate small
head -c 3000 small >short
refused index short
head -c 300 small.symbols >short.symbols
refused look-up short.symbols 1
cc -g -O2 -Wl,--build-id=0xbeef -o other small.c
refused index small --debug other
