#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# core.sh [--quick] [--instructions] [--runs N]: report and merge against `go tool pprof`, on
# made-up profiles of a large program. See README.md. $BUILD is a build directory; build/ when not set.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
data=$build/bench/data
tools=(bench/bench-generate bench/bench-inflate bench/bench-measure)

command -v go >/dev/null || {
    echo "There is no Go toolchain here, and so no pprof to compare with." >&2
    exit 77
}
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" >/dev/null
ninja -C "$build" assay "${tools[@]}" >/dev/null

# Data sets are kept until the generator changes.
mkdir -p "$data"
generate=$build/bench/bench-generate
stamp=$(cd "$root/bench" && cat {generate,program,stacks}.c program.h core.sh | sha256sum)
make_set() {
    local name=$1
    shift
    [ "$(cat "$data/$name.stamp" 2>/dev/null)" != "$stamp" ] || return 0
    rm -rf "${data:?}/$name" "$data/$name.stamp"
    "$generate" --output "$data/$name" "$@" >"$data/$name.facts"
    echo "$stamp" >"$data/$name.stamp"
}
make_set a.pb.gz --seed 1 --samples 400000 --stacks 50000
make_set a-tables-last.pb.gz --seed 1 --samples 400000 --stacks 50000 --order tables-last
make_set b.pb.gz --seed 2 --samples 2000000 --stacks 200000
make_set c --seed 3 --samples 10000 --stacks 4000 --files 200

# Recent Go builds pprof at its first use; the program itself is timed, not the go command.
go tool pprof -h >/dev/null 2>&1 || true
PPROF=$(go tool -n pprof)
export PPROF
exec python3 "$root/bench/core.py" --build "$build" --data "$data" "$@"
