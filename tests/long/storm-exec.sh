# SPDX-License-Identifier: Apache-2.0
# Programs that take each other's place in one process, at the same addresses.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
# shellcheck disable=SC2034 # for what is read below
storm_kib=150000
storm_exec 4000
