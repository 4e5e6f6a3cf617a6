# SPDX-License-Identifier: Apache-2.0
# The agent's upload by gRPC: what it has acknowledged arrives once, also when the server is killed
# again and again; batches that the server rejects are set aside; a server without HTTP/2 loses
# nothing; TLS and tokens.
. "$ROOT/tests/server/common.bash"
client() { python3 "$ROOT/tests/server/grpc.py" "$1" "${url#http*://}" "$FIXTURES" "${@:2}"; }

feed() { # OPTION... COUNT INTERVAL-MS: sets $feed
    local options=("${@:1:$#-2}") rest=("${@:$#-1}")
    rm -f input
    mkfifo input
    "$AGENT_FEED" "${options[@]}" "$at" spool "${rest[@]}" <input >>feed.out 2>>feed.err 8>&- &
    feed=$!
    servers+=("$feed")
    exec 8>input
}
end_feed() {
    exec 8>&-
    wait "$feed"
    tail -n 1 feed.out >figures.json
}
spooled() { find spool -maxdepth 1 -name '*.batch' | wc -l; }
until_true() {
    local tries=0
    until "$@"; do
        if [ $((tries += 1)) -gt 1200 ]; then
            echo "It never came true: $*" >&2
            tail -n 20 feed.err ./*.log >&2
            return 1
        fi
        sleep 0.05
    done
}
put_all() { [ "$(grep -c '^put' feed.out)" -ge "$1" ]; }
all_sent() { put_all "$1" && [ "$(spooled)" -eq 0 ]; }

start_server first --data store -c keep.yaml
at=$url
address=${url#http://}
client body app 1000 one.otlp
feed -p -t 20000 -b one.otlp 150 15
for round in 1 2 3; do
    until_true put_all $((round * 40))
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    start_server "after$round" --data store -c keep.yaml --listen "$address" 8>&-
    url=http://$address
done
until_true all_sent 150
end_feed
json figures.json 'd["sent"] == 150 and d["upload_refused"] == 0 and d["failures"] >= 1'
client has app 150000

# gzip, and what is no profile.
: >feed.out
client body zipped 7 two.otlp
feed -p -g -b two.otlp 5 1
until_true all_sent 5
end_feed
client has zipped 35
: >feed.out
feed -p 3 1
until_true all_sent 3
end_feed
json figures.json 'd["upload_refused"] == 3 and d["refused"] == 3 and d["sent"] == 0'
grep -q 'rejected a batch.*invalid_argument' feed.err
stop_server

# A server that knows HTTP/1.1 only, as earlier versions: all is kept, and goes off later.
cat >old.py <<'PYTHON'
import http.server, sys
class Old(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *ignored):
        sys.stderr.write("asked\n")
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Old)
server.serve_forever()
PYTHON
python3 old.py "${address##*:}" 2>old.log &
old=$!
servers+=("$old")
: >feed.out
client body later 11 three.otlp
feed -p -t 2000 -b three.otlp 4 1
until_true grep -q asked old.log
until_true put_all 4
[ "$(spooled)" -eq 4 ]
kill "$old"
wait "$old" 2>/dev/null || true
start_server again --data store -c keep.yaml --listen "$address" 8>&-
url=http://$address
until_true all_sent 4
end_feed
client has later 44
stop_server
