# SPDX-License-Identifier: Apache-2.0
# Answers of tens of MB are sent while they are written: the server's memory stays far below them,
# a client that goes away ends its answer, and clients that don't read hold up nobody else.
. "$ROOT/tests/server/common.bash"

# 2,000 stacks of 60 functions with long names, most of which they share: small to send and to hold,
# 50 MB as folded text.
cat >make.py <<'PYTHON'
import random, sys, time
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def number(key, n): return varint(key << 3) + varint(n)
def field(key, content): return varint(key << 3 | 2) + varint(len(content)) + content
random.seed(7)
strings = ["", "cpu", "nanoseconds"] + ["f%03d_" % i + "x" * 400 for i in range(500)]
out = field(1, number(1, 1) + number(2, 2))
callers = [[random.randrange(1, 501) for _ in range(52)] for _ in range(10)]
for i in range(2000):
    stack = [random.randrange(1, 501) for _ in range(8)] + random.choice(callers)
    out += field(2, field(1, b"".join(map(varint, stack))) + field(2, varint(1000)))
for i in range(1, 501):
    out += field(4, number(1, i) + field(4, number(1, i))) + field(5, number(1, i) + number(2, i + 2))
for s in strings: out += field(6, s.encode())
out += number(9, time.time_ns()) + number(10, 10 ** 9)
open(sys.argv[1], "wb").write(out)
PYTHON
python3 make.py large.pb
start_server large --data store --memory-limit 96MiB
push large.pb 'service=large' >/dev/null
large='cpu%7Bservice%3D%22large%22%7D'
ask="/api/v1/profile?query=$large&from=now-1h&to=now%2B1h"

memory_mib() { echo $(($(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status") / 1024)); }
metric() { get /metrics | sed -n "s/^$1 //p"; }
# Of this file's own clients: no other asks.
wait_for_streams() {
    for _ in $(seq 1200); do
        [ "$(metric assay_http_streams)" = "$1" ] && return
        sleep 0.05
    done
    echo "There are $(metric assay_http_streams) streams, and not $1." >&2
    return 1
}

# Small answers have a length; what is asked for is what other formats say too.
curl -sS -D head.txt -o top.json "$url/api/v1/top?query=$large&from=now-1h&to=now%2B1h&limit=5"
grep -i '^content-length:' head.txt >/dev/null
json top.json 'd["total"] == 2000000'

# The whole of it, byte for byte, plain and compressed.
get "$ask&format=folded" >warm.folded
# The address sanitizer keeps memory that was given back.
if [ -w "/proc/$pid/clear_refs" ] && [[ $(ldd "$ASSAY") != *libasan* ]]; then
    echo 5 >"/proc/$pid/clear_refs"
    before=$(memory_mib)
fi
curl -sS -D head.txt -o plain.folded "$url$ask&format=folded"
grep -i '^transfer-encoding: chunked' head.txt >/dev/null
curl -sS --compressed -D head.txt -o packed.folded "$url$ask&format=folded"
grep -i '^content-encoding: gzip' head.txt >/dev/null
cmp plain.folded packed.folded
size_mib=$(($(stat -c %s plain.folded) / 1048576))
[ "$size_mib" -ge 40 ]
[ "$(wc -l <plain.folded)" -eq 2000 ]
[ "$(awk '{ n += $NF } END { print n }' plain.folded)" -eq 2000000 ]
if [ -n "${before-}" ]; then
    grown=$(($(memory_mib) - before))
    echo "an answer of $size_mib MiB took $grown MiB"
    [ "$grown" -lt $((size_mib / 4)) ]
fi

# Asked for its head only, and by a client that knows no chunks.
[[ $(curl -sS -I "$url$ask&format=folded") == *"200 OK"* ]]
curl -sS -0 -o old.folded "$url$ask&format=folded"
cmp plain.folded old.folded

# Formats that go out in pieces are whole files.
for format in pprof otlp; do
    get "$ask&format=$format" >"again.$format"
    "$ASSAY" convert --to folded -o again.folded "again.$format"
    sort again.folded | cmp - <(sort plain.folded)
done

# Lists of series too, by service: 2 of 600 series, with labels of 500 bytes.
python3 - <<'PYTHON'
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def number(key, n): return varint(key << 3) + varint(n)
def field(key, content): return varint(key << 3 | 2) + varint(len(content)) + content
strings = ["", "cpu", "nanoseconds", "thread", "run"] + ["t%03d-" % i + "0" * 500 for i in range(600)]
out = field(1, number(1, 1) + number(2, 2))
for i in range(600):
    out += field(2, field(1, b"\x01") + field(2, b"\x01") + field(3, number(1, 3) + number(2, i + 5)))
out += field(4, number(1, 1) + field(4, number(1, 1))) + field(5, number(1, 1) + number(2, 4))
open("threads.pb", "wb").write(out + b"".join(field(6, s.encode()) for s in strings))
PYTHON
for service in first second; do push threads.pb "service=$service&from=now-10s" >/dev/null; done
curl -sS -D head.txt -o series.json "$url/api/v1/series?from=now-1h&to=now%2B1h"
grep -i '^transfer-encoding: chunked' head.txt >/dev/null
json series.json 'len(d) == 1201 and len({(s["labels"]["service_name"], s["labels"].get("thread"))
    for s in d}) == 1201'
get "/api/v1/series?query=%7Bthread%3D~%22t00.*%22%7D&from=now-1h&to=now%2B1h" >series.json
json series.json 'len(d) == 20'

# Clients that ask and don't read, more than there are places for queries; then one that wants
# something small, and then they go.
cat >stall.py <<'PYTHON'
import os, socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
clients = []
for i in range(int(sys.argv[3])):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, int(port)))
    s.sendall(f"GET {sys.argv[2]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    if not s.recv(100).startswith(b"HTTP/1.1 200"): sys.exit("This one wasn't answered.")
    clients.append(s)
print("stalled", flush=True)
sys.stdin.read()
PYTHON
mkfifo go
python3 stall.py "$url" "$ask&format=folded" 12 <go >stalled.txt &
stall=$!
servers+=("$stall")
exec 7>go
for _ in $(seq 1200); do
    [ -s stalled.txt ] && break
    kill -0 "$stall"
    sleep 0.05
done
wait_for_streams 12
for _ in 1 2 3; do
    get "/api/v1/top?query=$large&from=now-1h&to=now%2B1h&limit=5" >top.json
    json top.json 'd["total"] == 2000000'
done
push large.pb 'service=other' >/dev/null
exec 7>&-
wait "$stall"
wait_for_streams 0
stop_server
