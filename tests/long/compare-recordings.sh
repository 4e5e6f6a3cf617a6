# SPDX-License-Identifier: Apache-2.0
# Real recordings of a program with bursts, compared with themselves: four processes are recorded
# for 24 minutes, and 500 pairs of pieces of each kind raise an alarm in at most 5%.
# $COMPARE_RECORDINGS are recordings of a run before, separated by colons.
# Chance: a rate of 5% exceeds the bound in one of 1,000 runs, and pieces are drawn more than once.
. "$ROOT/tests/capture/common.bash"
need cc
seconds=${COMPARE_SECONDS:-1440}

if [ -z "${COMPARE_RECORDINGS:-}" ]; then
    cc -O1 -g -o bursts "$ROOT/tests/long/bursts.c"
    recorders=()
    for host in 1 2 3 4; do
        ./bursts $((seconds + 600)) "$host" >/dev/null &
        started+=($!)
        "$ASSAY" record -q -F 997 -p $! -d "$seconds" -o "host.$host.otlp" &
        recorders+=($!)
        started+=($!)
    done
    wait "${recorders[@]}"
    COMPARE_RECORDINGS=host.1.otlp:host.2.otlp:host.3.otlp:host.4.otlp
fi
export COMPARE_RECORDINGS
for piece in 5 10 20; do
    check "pieces of $piece s" env COMPARE_PIECE_SECONDS=$piece COMPARE_RUNS=500 "$TEST_COMPARE_RECORDINGS"
done
