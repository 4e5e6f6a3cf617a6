#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# watch.sh [--quick]: what watching 100 services costs: see watch.py and README.md. $BUILD is a build
# directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay assay-simulate >/dev/null
PYTHONPATH=$root/tests/server exec python3 -B "$root/bench/watch.py" --assay "$build/assay" "$@"
