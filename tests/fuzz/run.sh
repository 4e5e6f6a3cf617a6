#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh FUZZER SEEDS BUILD: fuzzes one parser for $FUZZ_SECONDS and prints one line. What it learns is
# kept in BUILD/corpus for the next time, an input that fails in BUILD/findings.
set -euo pipefail

fuzzer=$1 seeds=$2 build=$3
seconds=${FUZZ_SECONDS:-10}
name=$(basename "$fuzzer")
corpus=$build/corpus/${name#fuzz-}
findings=$build/findings
mkdir -p "$corpus" "$findings"
folders=("$corpus")
[ -d "$seeds" ] && folders+=("$seeds")

max_length=65536
[ "$seconds" -lt 300 ] || max_length=1048576

log=$findings/$name.log
status=0
"$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len="$max_length" \
    -artifact_prefix="$findings/$name-" -print_final_stats=1 "${folders[@]}" >"$log" 2>&1 ||
    status=$?

if [ "$status" -ne 0 ]; then
    grep -m 1 -A 12 -E 'ERROR: |runtime error: |SUMMARY: ' "$log" || tail -n 15 "$log"
    echo "$name: failed; the input is in $findings, the log in $log."
    exit 1
fi
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
rm -f "$log"
echo "$name: $runs inputs in $seconds s, ${coverage:-0} edges covered, no finding."
