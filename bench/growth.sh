#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# growth.sh [--only NAME,...] [--full]: how the server's cost grows: each row measures two sizes and
# prints the growth. See README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay assay-simulate bench/bench-generate bench/bench-measure >/dev/null

PYTHONPATH=$root/tests/server exec python3 -B "$root/bench/growth.py" --build "$build" "$@"
