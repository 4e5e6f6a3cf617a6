# SPDX-License-Identifier: Apache-2.0
# Files of a running server are overwritten, cut and zeroed: no crash, no wrong value, other days are
# whole, and damage that an answer met stays visible. With sanitizers, where that program is built.
. "$ROOT/tests/server/common.bash"
sanitized=$(dirname "$ASSAY")-asan/assay
[ ! -x "$sanitized" ] || ASSAY=$sanitized
python3 - <<'PYTHON'
for day in range(1, 6):
    with open(f"day{day}.folded", "w") as file:
        for i in range(3000):
            file.write(f"main;day{day};f{i % 97};g{i} {day}\n")
PYTHON
start_server good --data good -c keep.yaml
for day in 1 2 3 4 5; do
    push "day$day.folded" "service=s&from=2026-11-0${day}T12:00:00Z" >/dev/null
done
stop_server
cat >damage.py <<'PYTHON'
import os, random, sqlite3, sys
path, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
size = os.path.getsize(path)
how = chance.choice(["flip", "zero", "cut", "garbage", "header", "blocks"])
# Others often miss what an answer reads. The first round, which may be the only one, must not.
if seed == 0:
    how = "blocks"
base = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
page_size = base.execute("PRAGMA page_size").fetchone()[0]
blocks = (base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'blocks'").fetchone()[0] - 1) * page_size
base.close()
with open(path, "r+b") as file:
    if how == "cut":
        file.truncate(chance.randrange(size))
    for _ in range({"flip": 30, "zero": 3, "garbage": 3, "header": 1, "cut": 0, "blocks": 1}[how]):
        at = {"header": 0, "blocks": blocks}.get(how, chance.randrange(size))
        file.seek(at)
        file.write({"flip": bytes([chance.randrange(256)]), "zero": b"\0" * 4096,
                    "blocks": chance.randbytes(page_size)}.get(how) or chance.randbytes(4096))
print(how)
PYTHON
# await_problem DAY: until health names its file.
await_problem() {
    for _ in $(seq 600); do
        get /api/v1/health >health.json
        ! json health.json "any('2026-11-0$1' in p for p in d['problems'])" 2>/dev/null || break
        sleep 0.05
    done
    json health.json "d['status'] == 'degraded' and any('2026-11-0$1' in p for p in d['problems'])"
}
rounds=${ASSAY_ROUNDS:-60} seen=0
for ((round = 0; round < rounds; round++)); do
    rm -rf store
    cp -r good store
    start_server running --data store -c keep.yaml
    day=$((round % 5 + 1))
    # Half of the time the file is open, with pages of it in the cache.
    [ $((round % 2)) = 0 ] ||
        get "/api/v1/flame?query=process_cpu:samples:count::&$always" >/dev/null
    how=$(python3 damage.py "store/anonymous/raw-default-2026-11-0$day.assay" "$round")
    for ask in flame top labels series; do
        curl -sS -o "answer-$ask" "$url/api/v1/$ask?query=process_cpu:samples:count::&$always"
    done
    # Rollups don't know this label: they may have been made before the damage, and would hide it.
    code=$(curl -sS -o got.folded -w '%{http_code}' \
        "$url/api/v1/profile?query=process_cpu:samples:count::%7Binstance%3D%22%22%7D&$always&format=folded")
    [ "$code" = 200 ] || { echo "round $round ($how): $code $(head -c 300 got.folded)" && exit 1; }
    python3 - "$day" "$how" "$round" <<'PYTHON'
import sys
damaged, how, number = int(sys.argv[1]), sys.argv[2], sys.argv[3]
wanted = {}
for day in range(1, 6):
    for line in open(f"day{day}.folded"):
        stack, value = line.rsplit(" ", 1)
        wanted[stack] = (day, int(value))
for line in open("got.folded"):
    stack, value = line.rsplit(" ", 1)
    if stack not in wanted or wanted[stack][1] != int(value):
        sys.exit(f"round {number} ({how}): nobody sent {line!r}")
    del wanted[stack]
lost = {day for day, value in wanted.values()}
if lost - {damaged}:
    sys.exit(f"round {number} ({how}): day {damaged} was damaged, but of days {lost} something is missing")
open("lost", "w").write("yes" if lost else "no")
PYTHON
    kill -0 "$pid"
    [ "$round" != 0 ] || [ "$(cat lost)" = yes ] || { echo "The first round's damage doesn't show." && exit 1; }
    if [ "$(cat lost)" = yes ]; then
        seen=$((seen + 1))
        await_problem "$day"
    fi
    printf 'main;new 1\n' >new.folded
    push new.folded "service=s&from=now-10s" >/dev/null
    stop_server
    if grep -e 'AddressSanitizer' -e 'runtime error' running.log; then exit 1; fi
done
echo "$rounds files damaged, $seen of them in a way that an answer shows"
