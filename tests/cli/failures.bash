# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Read by each case before its first line: see run.sh. A case that ends early says where, whether it
# was a command that failed or an `exit`. Shells that a case starts are its own business.
unset BASH_ENV
set -E
trap 'echo "${BASH_SOURCE[0]##*/}:$LINENO: status $? of: $BASH_COMMAND" >&2' ERR
exit() {
    local status=${1:-$?}
    [[ $status == 0 || $status == 77 ]] ||
        echo "${BASH_SOURCE[1]##*/}:${BASH_LINENO[0]}: exit $status" >&2
    builtin exit "$status"
}
