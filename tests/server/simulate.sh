# SPDX-License-Identifier: Apache-2.0
# The simulator's own sums are what the server has, to the last nanosecond, whatever the format; a
# run that is repeated changes nothing; refusals that pass are tried again, and others are told.
. "$ROOT/tests/server/common.bash"

fleet=(-n 7 -s 5 --services-per-agent 3 --rows 30 --stacks 200 --rounds 4 --in-flight 5)

# check_sums FILE: each service's total and rows, by the query API.
check_sums() {
    local service rows value
    while IFS=, read -r service rows value; do
        # Whoever sent it: else one of two sources of a service would count.
        "$ASSAY" query -u "$url" top "cpu{service=\"$service\",__source__=~\".+\"}" --from 1980-01-01 -f json >top.json
        json top.json "d['total'] == $value and d['quality']['samples'] == $rows"
    done < <(sed 1d "$1")
}

start_server first --data store -c keep.yaml
start=$(date -u -d '-3 hours' +%Y-%m-%dT%H:%M:%SZ)
"$ASSAY" simulate -u "$url" "${fleet[@]}" --from "$start" --prime --sums otlp.csv --json >result.json
json result.json 'd["uploads"] == d["acknowledged"] == 28 and d["windows"] == 84'
json result.json 'd["refused"] == {} and d["rows"] > 2000 and d["primed_rows"] > 500'
[ "$(wc -l <otlp.csv)" = 6 ]
check_sums otlp.csv

# The same once more: all is there already.
"$ASSAY" simulate -u "$url" "${fleet[@]}" --from "$start" --prime >/dev/null
check_sums otlp.csv

# pprof, another seed, and a server that was killed before it could tidy up.
"$ASSAY" simulate -u "$url" "${fleet[@]}" --from "$start" -f pprof --seed 2 --compression zstd \
    --prepare --server-pid "$pid" --sums pprof.csv >table.txt
grep '^acknowledged  *84$' table.txt >/dev/null
grep "^server's peak memory " table.txt >/dev/null
paste -d, otlp.csv pprof.csv | awk -F, 'NR > 1 { print $1 "," $2 + $5 "," $3 + $6 }
    NR == 1' >both.csv
check_sums both.csv
kill -9 "$pid"
wait "$pid" || true
start_server again --data store -c keep.yaml
check_sums both.csv

# Paced by the clock: the windows are of now.
"$ASSAY" simulate -u "$url" "${fleet[@]}" -i 200ms --seed 3 >/dev/null
"$ASSAY" query -u "$url" top 'cpu{service="service-001"}' --from now-1m -f json >top.json
json top.json 'd["quality"]["windows"] > 0'
stop_server

# Nobody there.
if "$ASSAY" simulate -u "$url" -n 1 --rounds 1 2>error.txt; then exit 1; fi
grep "Failed to connect" error.txt >/dev/null

# A server that has too much to do twice, and one that wants none of it.
cat >stub.py <<'PYTHON'
import http.server, sys

class Stub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers = [int(a) for a in sys.argv[1:]]

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.answers.pop(0) if self.answers else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Stub)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
stub() {
    : >port.txt
    python3 stub.py "$@" >port.txt &
    servers+=($!)
    until [ -s port.txt ]; do sleep 0.05; done
}
stub 429 503
"$ASSAY" simulate -u "http://127.0.0.1:$(cat port.txt)" -n 1 -s 1 --rounds 2 --fast --json >result.json
json result.json 'd["acknowledged"] == 2 and d["repeated_tries"] == 2 and
    d["refused"] == {"429": 1, "503": 1}'
stub 400
if "$ASSAY" simulate -u "http://127.0.0.1:$(cat port.txt)" -n 1 -s 1 --rounds 2 --fast --json \
    >result.json; then exit 1; fi
json result.json 'd["acknowledged"] == 1 and d["refused"] == {"400": 1}'

# A server that takes connections and never answers: a signal ends the simulator all the same.
cat >mute.py <<'PYTHON'
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = [server.accept()[0]]
print("connected", flush=True)
while True: kept.append(server.accept()[0])
PYTHON
: >port.txt
python3 mute.py >port.txt &
servers+=($!)
until [ -s port.txt ]; do sleep 0.05; done
"$ASSAY" simulate -u "http://127.0.0.1:$(sed -n 1p port.txt)" -n 3 -s 1 --rounds 2 --json >result.json &
simulator=$!
servers+=("$simulator")
until [[ $(<port.txt) == *connected* ]]; do sleep 0.05; done
kill -TERM "$simulator"
tries=0
while kill -0 "$simulator" 2>/dev/null; do
    [ $((tries += 1)) -lt 1200 ] || { echo "The simulator goes on after SIGTERM." >&2; exit 1; }
    sleep 0.05
done
if wait "$simulator"; then exit 1; fi
json result.json 'd["acknowledged"] == 0 and d["given_up"] >= 1'

# Mistakes on the command line.
for wrong in '-n 0' '--format x' '--stacks-known 2' '-d 1m --rounds 3' '-i x' '--compression x'; do
    # shellcheck disable=SC2086
    if "$ASSAY" simulate -u http://127.0.0.1:1 $wrong 2>error.txt; then exit 1; fi
    [ -s error.txt ]
done
