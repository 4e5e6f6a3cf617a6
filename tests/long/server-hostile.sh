# SPDX-License-Identifier: Apache-2.0
# Minutes of requests that are cut, flipped and mixed up, at every route: see
# tests/server/hostile.sh. With sanitizers, where ./dev has built that program too.
sanitized=$(dirname "$ASSAY")-asan/assay
[ ! -x "$sanitized" ] || export ASSAY=$sanitized
export HOSTILE_ROUNDS=6000
. "$ROOT/tests/server/hostile.sh"
