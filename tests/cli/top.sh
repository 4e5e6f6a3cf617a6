# SPDX-License-Identifier: Apache-2.0
# `assay top` of a program with known shares: as a table, and on a terminal of our own
# (top_terminal.py), where every key is pressed and the terminal must be as before at each end.
# Chance: shares within one second are estimates from few samples.
cat >known.c <<'END'
#include <stdint.h>
#include <unistd.h>
static volatile uint64_t sink;
#define CALL __attribute__((noinline, noclone))
CALL void burn(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i * i; }
CALL void simmer(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i * i; }
CALL void eighty(void) { burn(800000); sink++; }
CALL void twenty(void) { simmer(200000); sink++; }
CALL void work(void) { eighty(); twenty(); sink++; }
int main(void) { alarm(300); for (;;) work(); }
END
gcc -O2 -fomit-frame-pointer -o known known.c
./known &
known=$!
trap 'kill -9 $known 2>/dev/null || true' EXIT

status=0
"$ASSAY" top -p "$known" -F 499 -d 2 >table 2>said || status=$?
if [ "$status" -ne 0 ] && grep -E 'perf_event_paranoid|no perf events' said >/dev/null; then
    echo "Samples cannot be taken here: $(cat said)"
    exit 77
fi
[ "$status" -eq 0 ] || { cat said; exit 1; }

echo "== one table"
heading="of [0-9.]+ s of process $known \\(known\\) by (BPF|perf events)"
heading="^[0-9,]+ samples? $heading, [0-9.]+ of [0-9]+ CPUs?, .+\$"
sed -nE "1s/$heading/the heading/p" table
sed -n 2p table | tr -s ' '
# The kernel's share depends on what else runs; totals don't.
share() { awk -v f="$1" '$4 == f { sub("%", "", $2); print $2 }' table; }
awk -v b="$(share burn)" -v s="$(share simmer)" 'BEGIN {
    if (b > 65 && b < 95 && s > 5 && s < 35) print "shares are right"
    else print "burn has " b " and simmer has " s }'
grep -cE '^ *[0-9.]+%  +[0-9.]+%  known  +(main|work|eighty|twenty|burn|simmer)$' table
"$ASSAY" top -p "$known" --once --cum -n 3 -d 0.5 >short
wc -l <short
! grep $'\033' table short || echo "there are escape sequences"

# The whole machine takes privilege.
if [ "$(id -u)" -eq 0 ]; then
    "$ASSAY" top -a --once -n 0 -d 1 -F 499 | grep -cE ' known  +burn$'
else
    echo 1
fi

echo "== on a terminal"
python3 "$ROOT/tests/cli/top_terminal.py" "$ASSAY" "$known"

echo "== the end of a process"
python3 "$ROOT/tests/cli/top_terminal.py" "$ASSAY" "$known" end

echo "== what goes wrong"
try() {
    local status=0
    "$ASSAY" top "$@" >out 2>err || status=$?
    head -1 err
    echo "-> $status"
}
try -p 999999999
try -p nobody
try -p 1,,2
try -p ''
try -a -p 1
try -F 0
try -d 0
try -d nan
try -w 100
# Cgroups take BPF, which a pid namespace of its own doesn't have.
try --cgroup /not/there --once | sed -E '/cgroup|pid namespace/s/.*/the cgroup is named/'
try more
