#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# assay and `go tool pprof` must agree to the last digit: on profiles of a Go program that is built
# and run here, on our own fixtures and, when $ASSAY_DATA is set, on the files in its pprof directory.
# Toolchains: go

peers=$ROOT/tests/peers

command -v go >/dev/null || {
    echo "There is no Go toolchain here, and so no pprof to compare with."
    exit 77
}

# Nothing is downloaded: the program uses the standard library only.
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 PPROF_TMPDIR=$PWD
work=$PWD
(cd "$peers/goload" && go build -trimpath -o "$work/shopd" .)
go tool pprof -h >/dev/null 2>&1 || true # recent Go builds it at its first use
PPROF=$(go tool -n pprof)
export PPROF

mkdir profiles
./shopd -out profiles

files=(profiles/*.pb.gz "$FIXTURES"/pprof/*.pb.gz)
merges=(
    --merge "profiles/cpu.pb.gz,profiles/cpu2.pb.gz"
    --merge "profiles/heap.pb.gz,profiles/allocs.pb.gz"
)
if [ -n "${ASSAY_DATA:-}" ]; then
    files+=("$ASSAY_DATA"/pprof/*.pb.gz)
    many=("$ASSAY_DATA"/pprof/many/*.pb.gz)
    [ ! -e "${many[0]}" ] || merges+=(--merge "$(IFS=,; echo "${many[*]}")")
fi
python3 "$peers/compare_pprof.py" "${merges[@]}" "${files[@]}"
