# SPDX-License-Identifier: Apache-2.0
# Answers of tens of MB are sent while they are written: the server's memory stays far below them,
# a client that goes away ends its answer, and clients that don't read hold up nobody else.
. "$ROOT/tests/server/common.bash"

# 2,000 stacks of 60 functions with long names, most of which they share: small to send and to hold,
# 50 MB as folded text. Each belongs to a span.
cat >make.py <<'PYTHON'
import random, sys, time
from protobuf import field, varint
random.seed(7)
strings = ["", "cpu", "nanoseconds"] + ["f%03d_" % i + "x" * 400 for i in range(500)]
strings += ["span_id"] + ["%016x" % (i + 1) for i in range(2000)]
out = field(1, field(1, 1) + field(2, 2))
callers = [[random.randrange(1, 501) for _ in range(52)] for _ in range(10)]
for i in range(2000):
    stack = [random.randrange(1, 501) for _ in range(8)] + random.choice(callers)
    span = field(3, field(1, 503) + field(2, 504 + i))
    out += field(2, field(1, b"".join(map(varint, stack))) + field(2, varint(1000)) + span)
for i in range(1, 501):
    out += field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, i + 2))
for s in strings: out += field(6, s)
out += field(9, time.time_ns()) + field(10, 10 ** 9)
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
measured() { [ -w "/proc/$pid/clear_refs" ] && [[ $(ldd "$ASSAY") != *libasan* ]]; }
begin_measuring() {
    before=0
    ! measured || { echo 5 >"/proc/$pid/clear_refs" && before=$(memory_mib); }
}
end_measuring() { # FILE
    local size_mib=$(($(stat -c %s "$1") / 1048576)) grown
    [ "$size_mib" -ge 40 ]
    measured || return 0
    grown=$(($(memory_mib) - before))
    echo "$1, an answer of $size_mib MiB, took $grown MiB"
    [ "$grown" -lt $((size_mib / 4)) ]
}
begin_measuring
curl -sS -D head.txt -o plain.folded "$url$ask&format=folded"
grep -i '^transfer-encoding: chunked' head.txt >/dev/null
curl -sS --compressed -D head.txt -o packed.folded "$url$ask&format=folded"
grep -i '^content-encoding: gzip' head.txt >/dev/null
cmp plain.folded packed.folded
[ "$(wc -l <plain.folded)" -eq 2000 ]
[ "$(awk '{ n += $NF } END { print n }' plain.folded)" -eq 2000000 ]
end_measuring plain.folded

# Exemplars, each with its stack.
begin_measuring
curl -sS -D head.txt -o exemplars.json \
    "$url/api/v1/exemplars?query=$large&from=now-1h&to=now%2B1h&limit=5000"
grep -i '^transfer-encoding: chunked' head.txt >/dev/null
end_measuring exemplars.json
json exemplars.json 'len({e["span_id"] for e in d["exemplars"]}) == 2000 and not d["more"] and
    all(len(e["stack"]) == 60 for e in d["exemplars"])'
get "/api/v1/exemplars?query=$large&from=now-1h&to=now%2B1h&limit=10" >exemplars.json
json exemplars.json 'len(d["exemplars"]) == 10 and d["more"]'

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
from protobuf import field
strings = ["", "cpu", "nanoseconds", "thread", "run"] + ["t%03d-" % i + "0" * 500 for i in range(600)]
out = field(1, field(1, 1) + field(2, 2))
for i in range(600):
    out += field(2, field(1, b"\x01") + field(2, b"\x01") + field(3, field(1, 3) + field(2, i + 5)))
out += field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 4))
open("threads.pb", "wb").write(out + b"".join(field(6, s) for s in strings))
PYTHON
for service in first second; do push threads.pb "service=$service&from=now-10s" >/dev/null; done
curl -sS -D head.txt -o series.json "$url/api/v1/series?from=now-1h&to=now%2B1h"
grep -i '^transfer-encoding: chunked' head.txt >/dev/null
json series.json 'len(d) == 1201 and len({(s["labels"]["service_name"], s["labels"].get("thread"))
    for s in d}) == 1201'
get "/api/v1/series?query=%7Bthread%3D~%22t00.*%22%7D&from=now-1h&to=now%2B1h" >series.json
json series.json 'len(d) == 20'

# Values over time, a group for each of these; and the same things of Pyroscope's API.
chunked() { # FILE curl-arguments...
    local file=$1
    shift
    curl -sS --fail-with-body -D head.txt -o "$file" "$@"
    grep -i '^transfer-encoding: chunked' head.txt >/dev/null
}
chunked points.json "$url/api/v1/timeseries?query=cpu%7Bthread%3D~%22.%2B%22%7D&from=now-1h&to=now%2B1h&group_by=thread&step=120&limit=600"
json points.json 'len(d["series"]) == 600 and all(s["points"][0][1] == 2 for s in d["series"])'
# Without a limit the greatest 500, and the others as one.
get "/api/v1/timeseries?query=cpu%7Bthread%3D~%22.%2B%22%7D&from=now-1h&to=now%2B1h&group_by=thread&step=120" >points.json
json points.json '[s.get("rest") for s in d["series"]] == 500 * [None] + [100] and d["series"][-1]["labels"] == {}
    and d["series"][-1]["points"][0][1] == 200 and sum(s["points"][0][1] for s in d["series"]) == 1200'
"$ASSAY" query timeseries 'cpu{thread=~".+"}' --group-by thread --step 120 -n 2 --to now+1h -u "$url" >points.txt
grep -E '^\(598 more\) ' points.txt >/dev/null
ask_list() { # FILE METHOD BODY
    chunked "$1" -H 'Content-Type: application/json' -d "$3" "$url/querier.v1.QuerierService/$2"
}
now=$(date +%s)
select='"profileTypeID":"process_cpu:cpu:nanoseconds::","labelSelector":"{thread=~\".+\"}"'
select+=",\"start\":$((now - 3600))000,\"end\":$((now + 3600))000"
ask_list points.json SelectSeries "{$select,\"groupBy\":[\"thread\"],\"step\":60}"
json points.json 'len(d["series"]) == 600 and all(s["points"][0]["value"] == 2 for s in d["series"])'
ask_list heat.json SelectHeatmap "{$select,\"groupBy\":[\"thread\"],\"step\":60,\"queryType\":1}"
json heat.json 'len(d["series"]) == 600 and all(sum(s["slots"][0]["counts"]) == 2 for s in d["series"])'
ask_list values.json LabelValues '{"name":"thread"}'
json values.json 'len(d["names"]) == 600 and d["names"] == sorted(set(d["names"]))'
ask_list sets.json Series '{"matchers":["{service=\"first\"}"]}'
json sets.json 'len(d["labelsSet"]) == 600'
ask_list sets.json Series '{"matchers":["{service=\"first\"}","{service=~\"f.*\"}"],"labelNames":["thread"]}'
json sets.json 'len(d["labelsSet"]) == 600'
python3 - "$url" "$now" <<'PYTHON'
# As protobuf, where a message's length stands before it.
import struct, sys, urllib.request
from protobuf import field, varint
select = field(1, "process_cpu:cpu:nanoseconds::") + field(2, '{thread=~".+"}')
now = int(sys.argv[2])
select += field(3, (now - 3600) * 1000) + field(4, (now + 3600) * 1000)
def groups(method, body):
    request = urllib.request.Request(f"{sys.argv[1]}/querier.v1.QuerierService/{method}", select + body,
                                     {"Content-Type": "application/proto"})
    data, count = urllib.request.urlopen(request).read(), 0
    while data:
        assert data[0] == 1 << 3 | 2
        length, at = data[1] & 127, 1
        while data[at] & 128:
            at += 1
            length |= (data[at] & 127) << 7 * (at - 1)
        assert len(data) > at + length
        data, count = data[at + 1 + length:], count + 1
    return count
step = struct.pack("<d", 60)
assert groups("SelectSeries", field(5, "thread") + varint(6 << 3 | 1) + step) == 600
assert groups("SelectHeatmap", varint(5 << 3 | 1) + step + field(6, "thread") + field(7, 1)) == 600
PYTHON

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
