# SPDX-License-Identifier: Apache-2.0
# What tests of spool and upload share: a server that misbehaves on demand, and a feed of batches.
type python3 >/dev/null || { echo "There is no python3."; exit 77; }

feeds=()
trap 'for p in "${feeds[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT

behave() { echo "$*" >mode.new && mv mode.new mode; }

# start_fake [PORT]: sets $fake, $port.
start_fake() {
    : >port
    python3 "$ROOT/tests/agent/fake_server.py" fake.log mode "$@" >port 2>>fake.err 8>&- &
    fake=$!
    feeds+=("$fake")
    until [ -s port ]; do
        kill -0 "$fake"
        sleep 0.02
    done
    port=$(cat port)
}

# start_feed OPTION... FOLDER COUNT INTERVAL-MS: sets $feed; what it says is in feed.out, after what
# earlier ones said.
start_feed() {
    local options=("${@:1:$#-3}") rest=("${@:$#-2}")
    rm -f input
    mkfifo input
    "$AGENT_FEED" "${options[@]}" "http://127.0.0.1:$port" "${rest[@]}" <input >>feed.out 2>>feed.err 8>&- &
    feed=$!
    feeds+=("$feed")
    exec 8>input
}

# Its figures are in figures.json then.
end_feed() {
    exec 8>&-
    wait "$feed"
    tail -n 1 feed.out >figures.json
}

# until_true COMMAND...: up to a minute.
until_true() {
    local tries=0
    until "$@"; do
        if [ $((tries += 1)) -gt 1200 ]; then
            echo "It never came true: $*" >&2
            tail -n 20 fake.log feed.err >&2
            return 1
        fi
        sleep 0.05
    done
}

acknowledged() { sed -n 's/^put //p' feed.out | sort; }
counted() { grep -c " $1 " fake.log || true; } # WHAT
has_counted() { [ "$(counted "$1")" -ge "$2" ]; }
all_stored() { [ -z "$(comm -23 <(acknowledged) <(sed -n 's/.* stored //p' fake.log | sort))" ]; }

# All that was acknowledged is there once, in order of time, and is what was put.
check_arrived() {
    until_true all_stored
    sed -n 's/.* stored //p' fake.log >order.txt
    sort -u order.txt | cmp - order.txt
    python3 - <<'PYTHON'
import glob, gzip, os, shutil, subprocess, sys
def check(name, body):
    if body.split(b"\n", 1)[0].decode() != name:
        sys.exit(f"The batch {name} is another one.")
for path in glob.glob("fake.log.d/*.gzip"):
    check(os.path.basename(path).rsplit(".", 1)[0], gzip.open(path).read())
paths = glob.glob("fake.log.d/*.zstd")
for i in range(0, len(paths), 500):  # not a process for each of thousands
    os.mkdir("plain")
    for path in paths[i:i + 500]:
        os.link(path, f"plain/{os.path.basename(path)[:-5]}.zst")
    subprocess.run(["zstd", "-qdr", "plain"], check=True)
    for path in paths[i:i + 500]:
        name = os.path.basename(path)[:-5]
        check(name, open("plain/" + name, "rb").read())
    shutil.rmtree("plain")
PYTHON
}

# figure EXPRESSION over the last figures, `d`.
figure() {
    python3 -c 'import json, sys
d = json.load(open("figures.json"))
sys.exit(0 if eval(sys.argv[1]) else f"{sys.argv[1]} does not hold in {d}")' "$1"
}

# What was put or found is somewhere, once.
check_sum() {
    figure 'd["put"] + d["left"] == sum(d[k] for k in ("sent", "refused", "damaged", "dropped", "batches"))'
}
