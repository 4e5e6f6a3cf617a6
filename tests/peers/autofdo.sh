#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A profile of a real program for both compilers: llvm-profdata reads clang's, clang's code has
# weights by it, and gcc's has counts by it.

skip() {
    echo "$1"
    exit 77
}
command -v gcc >/dev/null || skip "There is no gcc here."
command -v perf >/dev/null || skip "There is no perf here to record with."
cp "$ROOT/tests/peers/perfload/load.c" load.c
gcc -O2 -g -pthread -o load load.c
perf record -q -e cpu-clock -F 999 -o load.data ./load >/dev/null 2>record.log ||
    skip "perf may not record here: $(tr '\n' ' ' <record.log)"
"$ASSAY" convert load.data -o load.afdo.txt
"$ASSAY" convert load.data -o load.afdo
grep -E '^heavy:[0-9]+:[0-9]+$' load.afdo.txt >/dev/null
grep -E '^ [0-9]+: mix:[0-9]+$' load.afdo.txt >/dev/null

if command -v llvm-profdata >/dev/null; then
    llvm-profdata show --sample load.afdo.txt >shown.txt
    grep 'Function: heavy' shown.txt >/dev/null
fi
if command -v clang >/dev/null; then
    clang -O2 -g -pthread -fprofile-sample-use=load.afdo.txt -S -emit-llvm -o load.ll load.c
    grep 'branch_weights' load.ll >/dev/null
fi
gcc -O2 -g -pthread -fauto-profile=load.afdo -fdump-tree-optimized-blocks-details -c load.c -o load.o
cat load.c.*optimized >dump.txt
grep 'auto FDO' dump.txt >/dev/null || {
    echo "gcc doesn't use the profile."
    exit 1
}
