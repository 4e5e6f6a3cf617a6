# SPDX-License-Identifier: Apache-2.0
# A thousand programs per second for ten seconds.
. "$ROOT/tests/capture/common.bash"
. "$ROOT/tests/capture/storm.bash"
need gcc python3 nm
# shellcheck disable=SC2034 # for what is read below
storm_kib=150000
storm_spawn 1000 10
