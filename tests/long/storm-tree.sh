# SPDX-License-Identifier: Apache-2.0
# Two thousand processes, 64 at a time, each with its parent's stack under its own.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
# shellcheck disable=SC2034 # for what is read below
storm_kib=150000
storm_tree 2000 64
