# SPDX-License-Identifier: Apache-2.0
# The store, killed a hundred times while it writes, compacts and rolls up: see test_store_crash.c,
# which is killed twenty times in the unit tests.
STORE_CRASH_ROUNDS=100 "$TEST_STORE_CRASH"
