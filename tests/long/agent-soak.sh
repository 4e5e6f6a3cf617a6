# SPDX-License-Identifier: Apache-2.0
# Ten minutes of `assay up` under a changing load, or as many seconds as $ASSAY_SOAK_SECONDS says.
. "$ROOT/tests/agent/soak.bash"
soak "${ASSAY_SOAK_SECONDS:-600}"
