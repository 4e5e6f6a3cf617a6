#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# wall.sh [--seconds N] [--rounds N]: what following every context switch costs: see wall.py and
# README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay bench/bench-wall-switch >/dev/null
exec python3 -B "$root/bench/wall.py" --build "$build" "$@"
