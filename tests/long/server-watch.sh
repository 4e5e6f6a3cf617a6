# SPDX-License-Identifier: Apache-2.0
# Of 200 simulated deploys that change nothing, at most one in 20 yields a finding: see
# tests/unit/test_server_watch.c.
ASSAY_WATCH_DEPLOYS=200 "$TEST_SERVER_WATCH"
