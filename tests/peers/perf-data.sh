#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real recordings of perf in every shape: assay must find the stacks that `perf script` prints, with
# as many samples each. Frames of libc are left out: its functions have several names. Addresses
# outside all code are compared by their place alone: assay shows calls, perf return addresses. Of
# the kernel's functions that have an alias with __pi_ before, either name is right.

skip() {
    echo "$1"
    exit 77
}

command -v perf >/dev/null || skip "There is no perf here to record with."
command -v cc >/dev/null || skip "There is no compiler here to build the recorded program with."
export HOME=$PWD # perf's cache of binaries
# Without debug information no frame is inlined, so that symbols are all there is.
build() { cc -O1 "-$1" -fno-optimize-sibling-calls -pthread -o "$2" "$ROOT/tests/peers/perfload/load.c"; }
build fno-omit-frame-pointer with
build fomit-frame-pointer without
perf record -q -e cpu-clock -F 999 -g -o probe.data ./with >/dev/null 2>record.log ||
    skip "perf may not record here: $(tr '\n' ' ' <record.log)"

stacks() {
    "$ASSAY" convert "$1" --hide 'libc\.so|ld-linux' --sample-type "$2" --to folded -o - 2>>warnings |
        sed -E 's/(^|;)(0x|[^;]*\+0x)[0-9a-f]+/\1?/g; s/(^|;)__pi_/\1/g' |
        awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' | sort
}

compare() { # NAME TYPE...
    local name=$1 type
    shift
    perf script -i "$name.data" --no-inline >"$name.txt" 2>/dev/null ||
        perf script -i - --no-inline <"$name.data" >"$name.txt" 2>/dev/null
    for type in "$@"; do
        stacks "$name.txt" "$type" >"$name.$type.perf"
        stacks "$name.data" "$type" >"$name.$type.assay"
        [ "$(awk '{ sum += $NF } END { print sum + 0 }' "$name.$type.assay")" -gt 0 ] || {
            echo "$name.data has no samples of $type."
            cat warnings
            exit 1
        }
        python3 "$ROOT/tests/peers/compare_folded.py" "$name.$type.perf" "$name.$type.assay" || {
            echo "assay finds other stacks of $type in $name.data than perf."
            exit 1
        }
    done
}

record() { # NAME OPTIONS...
    local name=$1
    shift
    perf record -q -F 999 -o "$name.data" "$@" >/dev/null
}
compare probe samples cpu
record flat -e cpu-clock ./with
compare flat samples
record several -e cpu-clock,page-faults -g ./with
compare several samples cpu page-faults
record mapped -e cpu-clock -g --buildid-mmap ./with 2>/dev/null && compare mapped samples
record dwarf -e cpu-clock --call-graph dwarf ./without
compare dwarf samples cpu
record packed -e cpu-clock --call-graph dwarf -z ./without
compare packed samples
perf record -q -F 999 -e cpu-clock -g -o - ./with 2>/dev/null >pipe.data
compare pipe samples

# Standard input, compressed or not, is the same file.
for name in dwarf packed pipe; do
    "$ASSAY" report "$name.data" --format csv --top 0 >file.csv
    "$ASSAY" report - --format csv --top 0 <"$name.data" >input.csv
    gzip -c "$name.data" | "$ASSAY" report - --format csv --top 0 >gzip.csv
    # shellcheck disable=SC2002 # a pipe can't be read at another place
    cat "$name.data" | "$ASSAY" report - --format csv --top 0 >cat.csv
    for other in input gzip cat; do
        cmp file.csv $other.csv
    done
done

# A binary that was replaced since has another build ID, and names nothing.
cp with kept
record replaced -e cpu-clock -g ./kept
rm -rf .debug
"$ASSAY" report replaced.data --top 0 | grep heavy >/dev/null
cp without kept
if "$ASSAY" report replaced.data --top 0 | grep heavy >/dev/null; then
    echo "Names come from a binary with another build ID."
    exit 1
fi
