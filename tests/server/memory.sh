# SPDX-License-Identifier: Apache-2.0
# Hostile pushes by every route at once, all new, under a small memory limit: the server keeps to it,
# refuses what doesn't fit, and has everything that it acknowledged. $MEMORY_LIMITS are the limits in
# MiB, $MEMORY_ROUNDS how often each of eight senders pushes.
. "$ROOT/tests/server/common.bash"

for limit in ${MEMORY_LIMITS:-64}; do
    rm -rf store
    start_server "memory$limit" --data store -c keep.yaml --memory-limit "${limit}MiB"
    if [ -n "${MEMORY_GROUP:-}" ]; then # a cgroup, made by the long test
        echo $((limit * 12 / 10 << 20)) >"$MEMORY_GROUP/memory.max"
        echo "$pid" >"$MEMORY_GROUP/cgroup.procs"
    fi
    python3 "$ROOT/tests/server/memory_mix.py" "$url" "${MEMORY_ROUNDS:-12}"
    peak=$(awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$pid/status")
    echo "limit $limit MiB: $peak MiB resident at most"
    if [[ $(ldd "$ASSAY") != *libasan* ]]; then # which needs much more
        [ "$peak" -le $((limit * 11 / 10)) ]
    fi
    stop_server
done
