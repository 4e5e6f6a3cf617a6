#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of a Go program that we record against those of the runtime's own profiler, of the same run:
# all whole, and the same shares of time. The shares are also those that the kernel says.
# Chance: two profilers sample the same run at different moments.
# Toolchains: go

command -v go >/dev/null || {
    echo "There is no Go toolchain here to compare with."
    exit 77
}
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
work=$PWD
build() { # NAME CGO ARGUMENT...
    (cd "$ROOT/tests/peers/gostacks" &&
        { CGO_ENABLED=$2 go build -ldflags="-checklinkname=0" "${@:3}" -o "$work/$1" . 2>/dev/null ||
            CGO_ENABLED=$2 go build "${@:3}" -o "$work/$1" .; })
}

build plain 0
if command -v gcc >/dev/null; then
    build mixed 1 -buildmode=pie
fi
tried=0
for means in bpf perf; do
    for program in plain mixed; do
        [ -e "$program" ] || continue
        ASSAY_SAMPLER=$means "$ASSAY" record -F 199 -o ours.folded -- \
            "./$program" work 4 go.pb.gz >times.txt 2>said || {
            cat said
            continue
        }
        [[ $means != bpf || $(cat said) == *" by BPF"* ]] || continue
        [[ $means != perf || $(cat said) == *" by perf events"* ]] || continue
        cat said
        "$ASSAY" convert -o go.folded go.pb.gz
        python3 "$ROOT/tests/peers/compare_go.py" stacks ours.folded go.folded times.txt \
            "$([ "$means" = bpf ] && echo 1 || echo 0)"
        tried=$((tried + 1))
    done
done
[ "$tried" -gt 0 ] || {
    echo "Neither BPF nor perf events can be used here: $(tail -n 1 said)"
    exit 77
}
