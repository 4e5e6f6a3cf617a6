#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# agent.sh [--quick] [--only NAME]: what `assay agent` costs the host that it runs on. See README.md.
# $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay >/dev/null

exec python3 -B "$root/bench/agent.py" --assay "$build/assay" "$@"
