# SPDX-License-Identifier: Apache-2.0
# A disk that turns read-only under load, again and again: see tests/server/read-only.sh.
export DISK_ROUNDS=10
. "$ROOT/tests/server/read-only.sh"
