# SPDX-License-Identifier: Apache-2.0
# Thousands of random sessions: see tests/server/sessions.sh. With sanitizers, where that is built.
sanitized=$(dirname "$ASSAY")-asan/assay
[ ! -x "$sanitized" ] || export ASSAY=$sanitized
export SESSIONS=5000
. "$ROOT/tests/server/sessions.sh"
