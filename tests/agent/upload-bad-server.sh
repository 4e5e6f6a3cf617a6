# SPDX-License-Identifier: Apache-2.0
# A server that answers 500s, 429 with Retry-After, 503, 401, breaks connections, hangs, talks
# nonsense, or loses its answers: every batch arrives once, in order of time, and only what will
# never be taken is given up.
. "$ROOT/tests/agent/feed.bash"

behave ok
start_fake
start_feed -e enough spool 100000 20
for mode in 500 "429 1" 503 401 "proxy 400" "proxy 413" 413 "proxy 422" reset garbage lost 404 hang; do
    before=$(counted "${mode%% *}")
    behave "$mode"
    case $mode in
    # The batch is stored and sent again, which is a repeat.
    lost) until_true has_counted again 1 ;;
    hang) until_true has_counted hang $((before + 2)) ;;
    *) until_true has_counted "${mode%% *}" $((before + 1)) ;;
    esac
    behave ok
    until_true has_counted stored $(($(counted stored) + 2))
done
touch enough
gone() { [ -z "$(find spool -maxdepth 1 -name '*.batch')" ]; }
until_true gone
check_arrived
end_feed
figure 'd["put"] == d["sent"] > 20 and d["dropped"] == 0 and d["batches"] == 0'
figure 'd["failures"] >= 12 and d["throttled"] >= 2 and d["upload_refused"] == 0 and d["kept"] >= 4'
check_sum
[ "$(counted again)" -ge 1 ]

# After 429 nobody comes before the time that was asked for.
python3 - <<'PYTHON'
import sys
lines = [line.split() for line in open("fake.log")]
for i, (when, what, *_) in enumerate(lines):
    if what == "429":
        after = next((float(l[0]) for l in lines[i + 1:] if l[1] != "connection"), None)
        if after is not None and after - float(when) < 0.99:
            sys.exit(f"It came back after {after - float(when):.3f} s instead of 1 s.")
PYTHON

# A connection is used for more than one request: those that went well need no more than one for each
# that didn't.
python3 - <<'PYTHON'
import sys
words = [line.split()[1] for line in open("fake.log")]
connections, stored = words.count("connection"), words.count("stored")
failed = len(words) - connections - stored
print(f"{connections} connections, {stored} batches stored, {failed} not", file=sys.stderr)
if connections > failed + stored // 4 + 1:
    sys.exit(f"{connections} connections for {stored} batches and {failed} failures: none is kept.")
PYTHON

# What the server will never take is set aside, and doesn't stand in the way of the rest.
: >feed.out
behave 422
start_feed spool 5 1
until_true has_counted 422 1
refused=$(sed -n 's/.* 422 //p' fake.log | sed -n 1p)
behave ok
enough() { [ "$(grep -c '^put' feed.out)" -ge 5 ]; }
until_true enough
until_true gone
end_feed
check_sum
figure 'd["refused"] >= 1 and d["refused"] == d["upload_refused"] and d["dropped"] == 0'
figure 'd["sent"] + d["refused"] == 5'
[ -f "spool/refused/$refused.batch" ]

# A token is read again when its file has changed, and gzip is for servers without zstd.
: >feed.out
echo first >token
behave token second
before=$(counted 401)
start_feed -k token -g spool 5 1
until_true has_counted 401 $((before + 1))
echo second >token
check_arrived
end_feed
figure 'd["sent"] == 5 and d["failures"] >= 1'
[ "$(find fake.log.d -name '*.gzip' | wc -l)" -eq 5 ]

# A batch that the server fails on, and on no other, doesn't stand in the way of the rest; it is tried
# again, and goes off when the server can take it. While the server fails on all, order is kept.
: >feed.out
behave 500
before=$(counted 500)
start_feed spool 8 1
until_true has_counted 500 $((before + 12))
enough() { [ "$(grep -c '^put' feed.out)" -ge 8 ]; }
until_true enough
poison=$(acknowledged | sed -n 1p)
behave "poison $poison"
all_but_one() { [ "$(find spool -maxdepth 1 -name '*.batch')" = "spool/$poison.batch" ]; }
until_true all_but_one
sed -n 's/.* stored //p' fake.log | tail -n 7 >order.txt
acknowledged | sed 1d | cmp - order.txt
before=$(grep -c " 500 $poison" fake.log)
poison_counted() { [ "$(grep -c " 500 $poison" fake.log)" -ge "$1" ]; }
until_true poison_counted $((before + 1))
behave ok
until_true gone
end_feed
check_sum
figure 'd["sent"] == 8 and d["skipped"] >= 1 and d["dropped"] == 0 and d["refused"] == 0'

# A proxy that refuses one batch for good, such as by its size, doesn't stand in the way of the rest, and
# the batch is kept: when the proxy lets it pass, it arrives.
: >feed.out
behave "proxy 413"
before=$(counted proxy)
start_feed spool 6 1
until_true has_counted proxy $((before + 6))
enough() { [ "$(grep -c '^put' feed.out)" -ge 6 ]; }
until_true enough
large=$(acknowledged | sed -n 1p)
behave "proxy 413 $large"
all_but_one() { [ "$(find spool -maxdepth 1 -name '*.batch')" = "spool/$large.batch" ]; }
until_true all_but_one
grep 'A proxy rejected the batch' feed.err >/dev/null
behave ok
until_true gone
end_feed
check_sum
figure 'd["sent"] == 6 and d["kept"] >= 6 and d["refused"] == 0 and d["dropped"] == 0'
