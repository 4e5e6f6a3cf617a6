# SPDX-License-Identifier: Apache-2.0
# Bodies that are small to send and large to hold: what reading them takes comes out of the server's
# memory limit, and what doesn't fit is refused with 413 and counted. The next push is stored.
. "$ROOT/tests/server/common.bash"

cat >bombs.py <<'PYTHON'
import gzip
from protobuf import field, varint
def write(name, data):
    open(name, "wb").write(gzip.compress(data, 1))
million = 1000000
kind = field(1, b"\x08\x01\x10\x02")
# Empty tables, each entry of two bytes; and stacks that all differ.
write("pprof-locations", kind + b"\x22\x00" * (7 * million))
write("pprof-functions", kind + b"\x2a\x00" * (7 * million))
write("pprof-strings", kind + b"\x32\x00" * (7 * million))
write("pprof-samples", kind + b"".join(
    field(2, b"\x0a\x08%08d\x12\x01\x01" % i) for i in range(600000)))
for name, table in ("locations", 2), ("functions", 3), ("strings", 5), ("stacks", 7):
    write("otlp-" + name, field(2, field(table, b"") * (7 * million)))
write("otlp-samples", field(1, field(2, field(2, b"".join(
    field(2, b"\x08" + varint(i) + b"\x22\x01\x01") for i in range(900000))))))
# Frames of zstd that want so much of what was decoded to be kept; one of them in another.
def frame(log, content):
    return (b"\x28\xb5\x2f\xfd\x00" + bytes([log - 10 << 3]) +
            (len(content) << 3 | 1).to_bytes(3, "little") + content)
line = b"a;b 1\n"
open("zstd-window", "wb").write(frame(27, line))
open("zstd-nested", "wb").write(frame(24, frame(24, line)))
open("fair-window", "wb").write(frame(20, line))
write("lines-names", b"".join(b"f%08d;g%08d 1\n" % (i, i) for i in range(600000)))
PYTHON
python3 bombs.py
printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\nlimits: {samples: 16777216}\n' >all.yaml
start_server bombs --data store --memory-limit 64MiB -c all.yaml
push "$FIXTURES/man/base.pb.gz" 'service=good' >/dev/null

# send NAME: what the server answers has to be a refusal. 503 is for when housekeeping has some of the
# memory at that moment: it can't be known then that all of it wouldn't do.
send() {
    local target='/api/v1/push?service=bomb' got=503 tries=0
    local options=()
    if [[ $1 == otlp-* ]]; then
        target=/v1development/profiles
        options=(-H 'Content-Type: application/x-protobuf' -H 'Content-Encoding: gzip')
    elif [ "$1" = zstd-nested ]; then
        options=(-H 'Content-Encoding: zstd')
    fi
    while [ "$got" = 503 ] && [ $((tries += 1)) -lt 300 ]; do
        [ "$tries" -eq 1 ] || sleep 0.1
        got=$(curl -sS -o answer.txt -w '%{http_code}' "${options[@]}" --data-binary "@$1" "$url$target")
    done
    [ "$got" = 413 ] || { echo "$1: $got $(<answer.txt)" >&2; return 1; }
    local why="more than 24 MiB, the limit for pushes"
    [ "$1" != zstd-window ] || why='compress it with a smaller window'
    if [[ $(<answer.txt) != *"$why"* ]]; then
        echo "$1: $(<answer.txt)" >&2
        return 1
    fi
}
count=0
for name in pprof-* otlp-* lines-* zstd-*; do
    send "$name"
    count=$((count + 1))
done
[ "$count" -eq 12 ]
push fair-window 'service=fair' >/dev/null
get /api/v1/senders >senders.json
json senders.json "sum(s['refused'].get('too_large', 0) for s in d) == $count"
# All of it is given back, a moment after the answer; housekeeping takes some now and then.
tries=0
until [[ $(get /metrics) == *$'\nassay_memory_budget_used_bytes 0\n'* ]]; do
    [ $((tries += 1)) -lt 1200 ] || { echo "Memory isn't given back." >&2; exit 1; }
    sleep 0.05
done

# The address sanitizer keeps memory that was given back.
if [[ $(ldd "$ASSAY") != *libasan* ]]; then
    most=$(($(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status") / 1024))
    echo "at most $most MiB were resident"
    [ "$most" -lt 80 ]
fi
push "$FIXTURES/man/base.pb.gz" 'service=better' >/dev/null
get "/api/v1/labels?$always" >/dev/null
stop_server
