#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# capture.sh [--quick] [--only NAME]: what recording costs, beside the kernel's own stack walk and
# beside perf. See README.md. $BUILD is a build directory; build/ when not set. Takes root.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
tools=(bench/bench-subject bench/bench-subject-fp bench/bench-peer bench/bench-sleeper
    bench/peers.bpf.o)

skip() {
    echo "$1" >&2
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "Measuring what BPF programs cost takes root."
[ -r /sys/kernel/btf/vmlinux ] || skip "This kernel has no BTF, which the BPF sampler needs."
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay "${tools[@]}" >/dev/null

exec python3 -B "$root/bench/capture/main.py" --build "$build" "$@"
