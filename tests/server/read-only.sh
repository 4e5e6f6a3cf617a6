# SPDX-License-Identifier: Apache-2.0
# A disk that turns read-only under load, as Linux makes it after an error: pushes are refused, and
# what is there is served. Once it is whole again, everything acknowledged is there.
if [ "$(id -u)" != 0 ]; then
    echo "Only root can mount a disk."
    exit 77
fi
if [ -z "${PRIVATE_MOUNTS:-}" ]; then
    unshare -m true 2>/dev/null || { echo "Mounts of one's own are not allowed here."; exit 77; }
    PRIVATE_MOUNTS=1 exec unshare -m bash -euo pipefail "$0"
fi
. "$ROOT/tests/server/common.bash"
. "$ROOT/tests/server/disaster.bash"
PATH=$PATH:/usr/sbin:/sbin
type mkfs.ext4 fsck.ext4 losetup >/dev/null || { echo "Tools of ext4 are missing."; exit 77; }

truncate -s 64M image
mkfs.ext4 -q -F image
mkdir disk
for _ in 1 2 3 4 5; do # another test may take the same one at this moment
    loop=$(losetup -f --show image 2>/dev/null) && break
    sleep 0.2
done
[ -n "$loop" ] || { echo "There are no loop devices here."; exit 77; }
detach() {
    for process in "${servers[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    umount -l disk 2>/dev/null || true
    losetup -d "$loop"
}
trap detach EXIT
mount -o errors=remount-ro "$loop" disk
trigger=/sys/fs/ext4/$(basename "$loop")/trigger_fs_error
[ -w "$trigger" ] || { echo "This kernel can't be told to find an error on a disk."; exit 77; }

for ((round = 0; round < ${DISK_ROUNDS:-1}; round++)); do
    begin_load --data disk/store
    tell load
    tell acknowledge 20
    echo 1 >"$trigger"
    if touch disk/x 2>/dev/null; then exit 1; fi
    tell refuse 10 503
    tell health
    tell end
    tell check parts
    tell kill
    # Nothing can be stored there: said in a sentence that names it.
    if "$ASSAY" server --listen 127.0.0.1:0 --data disk/store 2>refused.log; then exit 1; fi
    grep '^assay: .*disk/store.*[Rr]ead-only.*\.$' refused.log >/dev/null ||
        { cat refused.log >&2; exit 1; }
    umount disk
    fsck.ext4 -y "$loop" >/dev/null 2>&1 || [ $? -lt 4 ]
    mount -o errors=remount-ro "$loop" disk
    tell start
    tell check
    tell load
    tell acknowledge 10
    tell end
    tell settle
    end_load
    rm -rf disk/store
done
umount disk
