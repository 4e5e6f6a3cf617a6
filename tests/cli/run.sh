#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh CASE.sh: runs one case in an empty directory of its own. The case must exit with 0, and what it
# prints must be CASE.stdout, where that exists. $ASSAY is the program, $FIXTURES the directory with
# input files, $ROOT the checkout. Exit status 77 skips, and the last line printed says why. Lines
# `ok` and `not ok` are cases of their own, and are passed on. A case with a line `# Chance: REASON` may
# be tried three times; each attempt that failed is printed, and run.py counts it. A case with a line
# `# Toolchains: go` (or node) runs with each version that toolchains.sh finds, as the first in its PATH.
set -euo pipefail

here=$(readlink -f "$0")
case_file=$1
expected=${case_file%.sh}.stdout
folder=$(mktemp -d "${TMPDIR:-/tmp}/assay-test.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/home"

HOME=${HOME:-/}
# The user's settings are none of a test's business; Go's caches only save time, and rustup finds
# its compilers there.
export GOCACHE=${GOCACHE:-$HOME/.cache/go-build} GOPATH=${GOPATH:-$HOME/go} GOTOOLCHAIN=local
export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
export HOME=$folder/home TMPDIR=$folder ASSAY_CACHE=$folder/cache LC_ALL=C TZ=UTC TERM=dumb
# Ubuntu's /usr/bin/perf only runs a perf of the running kernel's version, which a container may lack;
# any other does as well.
if [ -x /usr/bin/perf ] && ! /usr/bin/perf --version >/dev/null 2>&1; then
    for perf in /usr/lib/linux-tools-*/perf; do [ ! -x "$perf" ] || PATH=${perf%/*}:$PATH; done
fi
unset COLUMNS LINES NO_COLOR PAGER XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME

attempts=1
if grep -q '^# Chance: .' "$case_file"; then attempts=3; fi
run_case() {
    local attempt status
    for ((attempt = 1; ; attempt++)); do
        rm -rf "$folder/work"
        mkdir "$folder/work"
        cd "$folder/work"
        status=0
        BASH_ENV=$(dirname "$here")/failures.bash env --default-signal bash -euo pipefail "$case_file" \
            >"$folder/stdout" 2>"$folder/stderr" </dev/null || status=$?
        [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$attempt" -lt "$attempts" ] || break
        echo "# attempt $attempt of $attempts failed with status $status:"
        { tail -c 2000 "$folder/stderr"; tail -c 4000 "$folder/stdout"; } | sed 's/^/# /'
    done
    if [ "$status" -ne 0 ]; then
        tail -c 4000 "$folder/stderr" >&2
        tail -c 4000 "$folder/stdout"
        [ "$status" -eq 77 ] || echo "$(basename "$case_file") exited with status $status."
        return "$status"
    fi
    if [ -f "$expected" ] && ! cmp -s "$expected" "$folder/stdout"; then
        head -c 2000 "$folder/stderr" >&2
        diff -u --label expected --label got "$expected" "$folder/stdout" | head -n 60 || true
        return 1
    fi
    if grep -E '^(not )?ok\b' "$folder/stdout" >/dev/null; then cat "$folder/stdout"; fi
}

tool=$(sed -n 's/^# Toolchains: //p' "$case_file")
if [ -z "$tool" ]; then
    run_case
    exit
fi
mapfile -t found < <(bash "$(dirname "$(dirname "$here")")/toolchains.sh" "$tool")
[ ${#found[@]} -gt 0 ] || { echo "There is no $tool here." && exit 77; }
result=77
for line in "${found[@]}"; do
    read -r version program <<<"$line"
    rm -rf "${folder:?}/bin"
    mkdir "$folder/bin"
    ln -s "$program" "$folder/bin/$tool"
    status=0
    (PATH=$folder/bin:$PATH run_case) >"$folder/said" || status=$?
    reason=$(grep -v '^#' "$folder/said" | tail -n 1 || true)
    if [ "$status" -eq 77 ]; then
        echo "ok - $version # SKIP $reason"
        continue
    fi
    # Cases have the version in their names.
    sed -E "s/^((not )?ok\b( [0-9]+)? - )/\\1$version: /" "$folder/said"
    if ! grep -E '^(not )?ok\b' "$folder/said" >/dev/null; then
        [ "$status" -eq 0 ] && echo "ok - $version" || echo "not ok - $version"
    fi
    [ "$result" -ne 77 ] && [ "$result" -ne 0 ] || result=$status
done
[ "$result" -ne 77 ] || echo "$reason"
exit "$result"
