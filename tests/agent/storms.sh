# SPDX-License-Identifier: Apache-2.0
# Fifty hostile users who start processes, map code, rename threads and write maps of JIT code: the agent
# stays within its budget and says who they are. All storms, and longer: tests/long/agent-storms.sh.
. "$ROOT/tests/agent/storms.bash"
storms 2 users
