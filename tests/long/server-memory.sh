# SPDX-License-Identifier: Apache-2.0
# Hostile pushes under small and large memory limits, in a cgroup that has a fifth more where there may
# be one: see tests/server/memory.sh.
export MEMORY_LIMITS="64 256 1024" MEMORY_ROUNDS=150
group=/sys/fs/cgroup/assay-mix-$$
if [ "$(id -u)" -eq 0 ] && grep -qsw memory /sys/fs/cgroup/cgroup.subtree_control && mkdir "$group" 2>/dev/null; then
    export MEMORY_GROUP=$group
    if [ -f "$group/memory.swap.max" ]; then echo 0 >"$group/memory.swap.max"; fi
fi
status=0
bash -euo pipefail "$ROOT/tests/server/memory.sh" || status=$?
[ -z "${MEMORY_GROUP:-}" ] || rmdir "$group"
exit "$status"
