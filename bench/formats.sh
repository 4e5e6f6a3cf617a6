#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# formats.sh [--runs N] [--folder DIR]: files of other tools, read by assay and by the tools that own
# them: see formats.py and README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay >/dev/null
exec python3 -B "$root/bench/formats.py" --assay "$build/assay" "$@"
