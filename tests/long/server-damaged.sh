# SPDX-License-Identifier: Apache-2.0
# Random bytes of a day flipped, two hundred times: see tests/server/damaged.sh.
export DAMAGE_ROUNDS=200
. "$ROOT/tests/server/damaged.sh"
