# SPDX-License-Identifier: Apache-2.0
# The agent's budget under attack: the fastest fork loop, 5,000 threads, 100,000 mappings, 50 hostile
# users, maps of JIT code of half a gigabyte, and processes under one pid. In each window of ten seconds
# but the first the agent takes at most 1% of the machine, and never more memory than it may.
. "$ROOT/tests/agent/storms.bash"
storms "${ASSAY_STORM_WINDOWS:-4}"
