# SPDX-License-Identifier: Apache-2.0
# Ten thousand idle connections beside the other trouble, which comes over TLS as well: see
# tests/server/crowd.sh.
export CROWD=10000 CROWD_TLS=1
. "$ROOT/tests/server/crowd.sh"
