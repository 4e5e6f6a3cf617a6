#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh CASE.sh: runs one case in an empty folder of its own. The case must exit with 0, and what it
# prints must be CASE.stdout, where that exists. $ASSAY is the program, $FIXTURES the folder with
# input files, $ROOT the checkout. Exit status 77 skips, and the last line printed says why. Lines
# `ok` and `not ok` are cases of their own, and are passed on. $ASSAY_TEST_ATTEMPTS is how often it may
# be tried.
set -euo pipefail

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
unset COLUMNS LINES NO_COLOR PAGER XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME

# Cases about samples are about chance, too: what is wrong is wrong each time. The first attempts that
# failed are shown, and count only when all do.
attempts=${ASSAY_TEST_ATTEMPTS:-1}
for ((attempt = 1; ; attempt++)); do
    rm -rf "$folder/work"
    mkdir "$folder/work"
    cd "$folder/work"
    status=0
    bash -euo pipefail "$case_file" >"$folder/stdout" 2>"$folder/stderr" </dev/null || status=$?
    [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$attempt" -lt "$attempts" ] || break
    echo "# attempt $attempt of $attempts failed with status $status:"
    { tail -c 2000 "$folder/stderr"; tail -c 4000 "$folder/stdout"; } | sed 's/^/# /'
done

if [ "$status" -ne 0 ]; then
    tail -c 4000 "$folder/stderr" >&2
    tail -c 4000 "$folder/stdout"
    [ "$status" -eq 77 ] || echo "$(basename "$case_file") exited with status $status."
    exit "$status"
fi
if [ -f "$expected" ] && ! cmp -s "$expected" "$folder/stdout"; then
    head -c 2000 "$folder/stderr" >&2
    diff -u --label expected --label got "$expected" "$folder/stdout" | head -n 60 || true
    exit 1
fi
if grep -E '^(not )?ok\b' "$folder/stdout" >/dev/null; then cat "$folder/stdout"; fi
