#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# store.sh [--quick] [OPTION...]: size and speed of the embedded store. See README.md. $BUILD is a
# build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" bench/bench-store >/dev/null

exec "$build/bench/bench-store" "$@"
