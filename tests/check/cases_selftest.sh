#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cases_selftest.sh: does cli/run.sh tell why a case failed, and run those of a toolchain with each
# version? The toolchains here are two scripts that print a version.
set -euo pipefail
tests=$(dirname "$(dirname "$(readlink -f "$0")")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir newer older
printf '#!/bin/sh\necho go2.1\n' >newer/go
printf '#!/bin/sh\necho go2.0\n' >older/go
chmod +x newer/go older/go

# expect STATUS LINE...: the case on standard input ends with the status, and prints each line.
failed=0
expect() {
    local status=0 line
    cat >case.sh
    PATH=$folder/newer:$PATH ASSAY_TOOLCHAINS=$folder/older/go:$folder/none/go \
        bash "$tests/cli/run.sh" "$folder/case.sh" >said 2>&1 || status=$?
    [ "$status" -eq "$1" ] || failed=1 status="$status, not $1"
    for line in "${@:2}"; do
        grep -xF -e "$line" said >/dev/null || { failed=1 && echo "missing: $line"; }
    done
    [ "$failed" -eq 0 ] || { echo "status $status; the case:" && cat case.sh && echo "it said:" && cat said && exit 1; }
}

expect 0 <<<'echo fine'
expect 3 'case.sh:2: status 3 of: ( exit 3 )' 'case.sh exited with status 3.' <<<$'true\n(exit 3)'
expect 1 'case.sh:1: status 1 of: found=$(grep x /dev/null)' <<<'found=$(grep x /dev/null)'
expect 1 'case.sh:1: status 1 of: return 1' <<<'f() { true && return 1; }; f'
expect 1 'case.sh:1: exit 1' <<<'if true; then exit 1; fi'
expect 4 'case.sh:2: exit 4' <<<$'trap "echo end" EXIT\nexit 4'
expect 77 'There is no such tool here.' <<<'echo "There is no such tool here."; exit 77'

expect 0 'ok - go2.1' 'ok - go2.0' <<<$'# Toolchains: go\ngo version'
expect 1 'ok - go2.1' 'not ok - go2.0' 'case.sh:2: status 1 of: [ "$(go version)" = go2.1 ]' \
    <<<$'# Toolchains: go\n[ "$(go version)" = go2.1 ]'
expect 0 'ok - go2.1: a' 'ok - go2.0: a' <<<$'# Toolchains: go\necho "ok - a"'
expect 0 'ok - go2.1' 'ok - go2.0 # SKIP too old' \
    <<<$'# Toolchains: go\n[ "$(go version)" = go2.1 ] || { echo "too old"; exit 77; }'
expect 77 'ok - go2.0 # SKIP none will do' 'none will do' \
    <<<$'# Toolchains: go\necho "none will do"; exit 77'
