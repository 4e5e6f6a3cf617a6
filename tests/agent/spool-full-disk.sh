# SPDX-License-Identifier: Apache-2.0
# A spool on a disk that is full, and on one that turns read-only: batches wait in memory, what is
# dropped is the oldest and counted, and when there is room again all goes on as before.
if [ "${1:-}" != inside ] && [ -z "${INSIDE:-}" ]; then
    INSIDE=yes unshare --mount true 2>/dev/null ||
        { echo "This user may not make a mount namespace."; exit 77; }
    # The trap of a sourced file belongs to the shell that has it.
    export INSIDE=yes
    exec unshare --mount --propagation private bash -euo pipefail "$ROOT/tests/agent/spool-full-disk.sh"
fi
. "$ROOT/tests/agent/feed.bash"

mkdir disk
mount -t tmpfs -o size=256k tmpfs disk
behave 503
start_fake
enough() { [ "$(grep -c -E '^(put|memory)' feed.out)" -ge "$1" ]; }

# 60 batches of 10 kB: some 20 fit on the disk and ten in memory; the oldest go.
start_feed -s 10000 -m 100000 disk/spool 60 1
until_true enough 60
grep '^memory' feed.out >/dev/null
grep 'Failed to write to the spool.*: No space left on device' feed.err >/dev/null
behave ok
stored_all() { [ "$(tail -n 1 fake.log | sed 's/.* //')" = "$(tail -n 1 feed.out | sed 's/.* //')" ]; }
until_true stored_all
end_feed
check_sum
figure 'd["put"] == 60 and d["dropped"] > 20 and d["sent"] > 15 and d["batches"] == 0 and d["trouble"] == 1'
# The last ones, without a gap but for the one that was being sent while others had to go.
sed -n 's/.* stored //p' fake.log >order.txt
sort -u order.txt | cmp - order.txt
sent=$(sed -n '$=' order.txt)
sed -E 's/^(put|memory) //' feed.out | grep -v '{' | tail -n $((sent - 1)) >last.txt
[ "$(tail -n $((sent - 1)) order.txt)" = "$(cat last.txt)" ]

# There is room again.
: >feed.out
mount -o remount,size=4m disk
start_feed -s 10000 disk/spool 20 1
check_arrived
end_feed
figure 'd["put"] == 20 and d["sent"] == 20 and d["trouble"] == 0'

# Read-only, with batches on it that are still to be sent, and back.
: >feed.out
behave 503
start_feed -s 10000 -m 100000 disk/spool 20 50
until_true enough 5
# Over itself: what is open for writing below would keep the disk itself from it.
mount --bind disk/spool disk/spool
mount -o remount,ro,bind disk/spool
until_true enough 20
grep '^memory' feed.out >/dev/null
grep 'Failed to write to the spool.*: Read-only file system' feed.err >/dev/null
end_feed
figure 'd["trouble"] == 1 and d["memory"] > 0'
kept=$(grep -c '^put' feed.out)
# Who starts on it sends what is there, though nothing can be removed; the next sends it again.
: >feed.out
behave ok
before=$(counted stored)
start_feed disk/spool 0 1
until_true has_counted stored $((before + kept))
end_feed
umount disk/spool
start_feed disk/spool 1 1
check_arrived
end_feed
check_sum
[ "$(counted stored)" = $((before + kept + 1)) ]
[ "$(counted again)" -ge 1 ]
