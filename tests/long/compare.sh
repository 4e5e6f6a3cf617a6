# SPDX-License-Identifier: Apache-2.0
# Calibration of comparisons by simulation, as tests/unit/test_compare.c has it, with more runs: a
# program against itself 500 times in each kind of load, and the whole table of planted growth.
COMPARE_RUNS=500 COMPARE_POWER_RUNS=200 "$TEST_COMPARE"
