# SPDX-License-Identifier: Apache-2.0
# A disk that fills up under load: pushes are refused with a sentence and the rest goes on; with room
# again they are taken. Killed and started while it is full, the server has what it acknowledged.
if [ "$(id -u)" != 0 ]; then
    echo "Only root can mount a small disk."
    exit 77
fi
if [ -z "${PRIVATE_MOUNTS:-}" ]; then
    unshare -m true 2>/dev/null || { echo "Mounts of one's own are not allowed here."; exit 77; }
    PRIVATE_MOUNTS=1 exec unshare -m bash -euo pipefail "$0"
fi
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/disaster.bash"

# fill BYTES: leaves about these.
fill() {
    for _ in 1 2 3; do
        left=$(df --output=avail -B1 disk | sed -n 2p)
        [ "$left" -le "$1" ] || head -c $((left - $1)) /dev/zero >>disk/ballast 2>/dev/null || true
    done
}

# looks STATUS READY WRITABLE: what health, readiness and metrics say.
looks() {
    status "$2" "http://127.0.0.1:$port/ready"
    curl -sS "http://127.0.0.1:$port/api/v1/health" >health.json
    json health.json "d['status'] == '$1' and d['store']['writable'] is ($3 == 1)"
    curl -sS "http://127.0.0.1:$port/metrics" >metrics.txt
    grep "^assay_store_writable $3\$" metrics.txt >/dev/null
    [ "$3" = 1 ] || {
        json health.json 'd["pushes_refused"] > 0 and d["store"]["free_bytes"] < 2 << 20
            and any("disk" in p and "full" in p for p in d["problems"])'
        grep '^assay_store_free_bytes [0-9]' metrics.txt >/dev/null
        grep '^assay_store_write_failures_total [1-9]' metrics.txt >/dev/null
    }
}

mkdir disk
mount -t tmpfs -o size="${DISK_SIZE:-8m}" none disk
for ((round = 0; round < ${DISK_ROUNDS:-1}; round++)); do
    begin_load --data "disk/store$round"
    tell load
    tell acknowledge 20
    printf 'main 1\n' | curl -sS --fail-with-body --data-binary @- \
        "http://127.0.0.1:$port/api/v1/push?service=deleted&from=now-10s" >/dev/null
    looks ok 200 1
    fill 0
    tell refuse 10 503 507
    looks degraded 503 0
    tell health
    tell check
    # What is deleted goes, and is noted, without any room.
    curl -sS --fail-with-body -X POST -H 'X-Assay-Confirm: delete' \
        "http://127.0.0.1:$port/api/v1/admin/delete?query=%7Bservice_name%3D%22deleted%22%7D&from=1980-01-01&to=now%2B1d" >deleted.json
    json deleted.json 'd["windows"] == 1'
    "$ASSAY" store audit "disk/store$round" | grep '"delete".*1 windows' >/dev/null
    rm disk/ballast
    # The deletion has used what was kept for a day like this; with room it is taken again.
    for _ in $(seq 600); do [ ! -f "disk/store$round/reserve" ] || break; sleep 0.1; done
    tell acknowledge 20
    tell end
    tell check
    tell load
    # Somebody else leaves a little, as the server itself would: it starts, and reads.
    fill $((300 << 10))
    tell refuse 10 503 507
    tell kill
    tell end
    # What was under way may have taken the rest: the server has kept some for itself.
    fill 0
    tell start
    tell health
    tell check
    tell load
    tell refuse 5 503 507
    tell end
    # Nor is any of that left now, for it couldn't be taken again: what it took for itself before
    # is still there, and must do.
    tell kill
    fill 0
    "$ASSAY" server --listen 127.0.0.1:0 --data "disk/store$round" 2>full.log \
        {load_in}>&- {load_out}<&- &
    pid=$!
    servers+=("$pid")
    until grep 'serving on' full.log >/dev/null || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    grep 'serving on' full.log >/dev/null || { cat full.log >&2; exit 1; }
    kill "$pid" 2>/dev/null || true
    wait "$pid" || true
    rm disk/ballast
    tell start
    tell load
    tell acknowledge 20
    tell end
    tell settle
    end_load
    rm -rf "disk/store$round"
done
umount disk
