# SPDX-License-Identifier: Apache-2.0
# A minute of `assay up` under a changing load; tests/long/agent-soak.sh is ten.
. "$ROOT/tests/agent/soak.bash"
soak 60
