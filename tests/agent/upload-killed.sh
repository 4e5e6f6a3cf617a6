# SPDX-License-Identifier: Apache-2.0
# Sender killed with -9 in the middle of writing and sending, again and again, and its server too:
# all that the spool has acknowledged arrives once, in order of time. Then the backlog of an outage
# goes out at the rate that is allowed, and no faster.
. "$ROOT/tests/agent/feed.bash"

behave ok
start_fake
for ((i = 0; i < ${KILLS:-10}; i++)); do
    start_feed -s $((RANDOM % 60000)) spool 100000 "$((RANDOM % 3))"
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    if [ $((i % 5)) = 4 ]; then # the server goes, too
        kill -9 "$fake"
        wait "$fake" || true
        sleep 0.1
        start_fake "$port"
    fi
    kill -9 "$feed"
    wait "$feed" || true
    exec 8>&-
done
[ "$(acknowledged | wc -l)" -gt 100 ]
[ "$(acknowledged | wc -l)" = "$(acknowledged | uniq | wc -l)" ]
before=$(acknowledged | wc -l)
start_feed spool 1 0
# Its own batch is the last.
one_more() { [ "$(acknowledged | wc -l)" -gt "$before" ]; }
until_true one_more
check_arrived
gone() { [ -z "$(find spool -maxdepth 1 -name '*.batch')" ]; }
until_true gone
end_feed
figure 'd["damaged"] == 0 and d["dropped"] == 0 and d["refused"] == 0 and d["left"] > 0'
check_sum
[ -z "$(find spool -name '*.batch' -o -name '*.part')" ]

# 40 batches wait; 20 may go out each second, and three of them at once.
kill -9 "$fake"
wait "$fake" || true
: >feed.out
start_feed -r 20 spool 40 1
enough() { [ "$(grep -c '^put' feed.out)" -ge 40 ]; }
until_true enough
start_fake "$port"
check_arrived
end_feed
python3 - <<'PYTHON'
import sys
times = [float(line.split()[0]) for line in open("fake.log") if " stored " in line][-40:]
for i in range(len(times) - 10):
    if times[i + 10] - times[i] < 0.30:
        sys.exit(f"Ten batches came within {times[i + 10] - times[i]:.3f} s.")
PYTHON
