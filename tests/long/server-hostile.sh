# SPDX-License-Identifier: Apache-2.0
# Minutes of requests that are cut, flipped and mixed up, at every route: see
# tests/server/hostile.sh. With sanitizers, where ./dev has built that program too.
[ ! -x "$(dirname "$ASSAY")-asan/assay" ] || export ASSAY=$(dirname "$ASSAY")-asan/assay
export HOSTILE_ROUNDS=6000
. "$ROOT/tests/server/hostile.sh"
