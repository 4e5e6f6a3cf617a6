# SPDX-License-Identifier: Apache-2.0
# 10,000 random queries of random lives of a store (late windows, compaction, rollups, slots in memory,
# deletions, restarts, too little memory) and of a plain list of windows in memory have the same answers:
# see tests/unit/test_store_live.c.
STORE_LIVE_ROUNDS=${ASSAY_ROUNDS:-10} STORE_LIVE_SEED=1000 "$TEST_STORE_LIVE" >out.txt 2>&1 || { tail -c 2000 out.txt; exit 1; }
sed -n 's/.*\(answers of .*\)/\1/p' out.txt
[ -n "${ASSAY_ROUNDS:-}" ] || [ "$(sed -n 's/^\([0-9]*\) answers of .*/\1/p' out.txt)" -ge 10000 ]
