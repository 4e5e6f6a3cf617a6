#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# symbol.sh [--quick] [--binary FILE --debug FILE]: symbol indexes beside llvm-gsymutil,
# llvm-symbolizer and eu-addr2line, on the same addresses of a large binary. See README.md. $BUILD is
# a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay bench/bench-measure bench/bench-symbol-lookup >/dev/null
exec python3 -B "$root/bench/symbol.py" --build "$build" "$@"
