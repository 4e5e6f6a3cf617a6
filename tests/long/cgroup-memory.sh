# SPDX-License-Identifier: Apache-2.0
# A server in a cgroup whose memory limit is a quarter above its own limit: large pushes and queries of
# everything at once never get it killed; what doesn't fit is refused.
. "$ROOT/tests/server/common.bash"
[ "$(id -u)" -eq 0 ] || { echo "Only root can make a cgroup."; exit 77; }
limit_mib=96 cgroup_mib=120
if [ -f /sys/fs/cgroup/cgroup.controllers ] && grep -w memory /sys/fs/cgroup/cgroup.controllers >/dev/null; then
    group=/sys/fs/cgroup/assay-memory-$$ file=memory.max
elif [ -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/memory/assay-memory-$$ file=memory.limit_in_bytes
fi
{ mkdir "${group:-/nowhere/x}" && echo $((cgroup_mib << 20)) >"$group/$file"; } 2>/dev/null ||
    { echo "There is no memory controller for this user."; exit 77; }
cleanup() {
    for process in "${servers[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait
    rmdir "$group"
}
trap cleanup EXIT
# Swapping would hide what is too much.
if [ -f "$group/memory.swap.max" ]; then echo 0 >"$group/memory.swap.max"; fi
start_server server --data store -c keep.yaml --memory-limit ${limit_mib}M
echo "$pid" >"$group/cgroup.procs"
python3 - <<'PYTHON'
for size in (1000, 20000, 150000):
    with open(f"{size}.folded", "w") as file:
        for i in range(size):
            file.write(f"main;part{i % 977};function_{size}_{i};leaf{i * 7} {i % 9 + 1}\n")
PYTHON
client() { # NUMBER
    for i in $(seq "${ASSAY_ROUNDS:-12}"); do
        for size in 1000 20000 150000; do
            curl -sS -m 120 -o /dev/null -w 'push %{http_code}\n' --data-binary @$size.folded \
                "$url/api/v1/push?service=s$1-$i&from=now-$((10 * i + 10))s" || echo "push 000"
        done
        for ask in flame top profile; do
            curl -sS -m 120 -o /dev/null -w "ask %{http_code}\n" \
                "$url/api/v1/$ask?query=process_cpu:samples:count::&$always" || echo "ask 000"
        done
    done
}
clients=()
for number in 1 2 3 4; do
    client "$number" >"client$number.txt" 2>/dev/null &
    clients+=("$!")
done
wait "${clients[@]}"
sort client?.txt | uniq -c
kill -0 "$pid" || { tail -n 5 server.log; echo "The server was killed."; exit 1; }
if grep -h ' 000' client?.txt; then echo "A connection ended without an answer." && exit 1; fi
grep -h 'push 200' client?.txt >/dev/null
get /api/v1/health >/dev/null
{ cat "$group/memory.max_usage_in_bytes" "$group/memory.peak" 2>/dev/null || true; } | awk '{ printf "peak of the cgroup: %.0f MiB\n", $1 / 1048576 }'
stop_server
"$ASSAY" store check store >/dev/null
