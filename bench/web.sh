#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# web.sh [--quick]: how fast the page draws, loads and opens files, in headless Chromium, beside
# speedscope in the same run. See README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay >/dev/null

# Only for this comparison: it is no part of the page, and of no other build.
peer=$build/bench-web
if ! [ -f "$peer/node_modules/speedscope/package.json" ]; then
    mkdir -p "$peer"
    npm install --prefix "$peer" --no-audit --no-fund --loglevel=error --ignore-scripts \
        speedscope@1.25.0 >&2 || echo "speedscope can't be had; the comparison is left out." >&2
fi
ASSAY=$build/assay SPEEDSCOPE=$peer/node_modules/speedscope/dist/release \
    exec node "$root/web/bench.mjs" "$@"
