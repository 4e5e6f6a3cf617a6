#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# assay and `go tool pprof` must agree to the last digit on gperftools profiles and the other text
# profiles: our fixtures and, when $ASSAY_DATA is set, the files in its gperftools directory. Left out
# are fixtures on which assay knows more than pprof: file names with spaces, and Go's symbols in
# comments, which are taken out here so that the addresses can be compared.

peers=$ROOT/tests/peers

command -v go >/dev/null || {
    echo "There is no Go toolchain here, and so no pprof to compare with."
    exit 77
}
export GOTOOLCHAIN=local PPROF_TMPDIR=$PWD
go tool pprof -h >/dev/null 2>&1 || true # recent Go builds it at its first use
PPROF=$(go tool -n pprof)
export PPROF

files=()
for name in cpu-32le.prof cpu-32be.prof cpu-no-trailer.prof heap.txt heap-v2.txt growth.txt \
    contention.txt threads.txt java-heap.txt java-contention.txt; do
    files+=("$FIXTURES/gperftools/$name")
done
for name in heap-go goroutine mutex; do
    grep -v '^#' "$FIXTURES/gperftools/$name.txt" >"$name.txt"
    files+=("$name.txt")
done
[ -z "${ASSAY_DATA:-}" ] || files+=("$ASSAY_DATA"/gperftools/*)
python3 "$peers/compare_pprof.py" "${files[@]}"
