#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# heap.sh [--rounds N]: what the allocation sampler costs: see heap.py and README.md. $BUILD is a build
# directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay sdk/libassay_heap.so bench/bench-heap-pair >/dev/null
exec python3 -B "$root/bench/heap.py" --build "$build" "$@"
