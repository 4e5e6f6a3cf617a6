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

mkdir disk
mount -t tmpfs -o size="${DISK_SIZE:-8m}" none disk
for ((round = 0; round < ${DISK_ROUNDS:-1}; round++)); do
    begin_load --data "disk/store$round"
    tell load
    tell acknowledge 20
    fill 0
    tell refuse 10 503 507
    tell health
    tell check
    rm disk/ballast
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
