#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# server.sh [--quick] [--only NAME]: what the server takes, keeps and answers, driven over loopback
# by `assay simulate`. See README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay assay-simulate >/dev/null

exec python3 -B "$root/bench/server.py" --assay "$build/assay" "$@"
