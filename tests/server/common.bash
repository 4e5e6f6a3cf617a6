# SPDX-License-Identifier: Apache-2.0
# What tests of the server share: starting one on a free port, stopping it, asking it.

servers=()
trap 'for pid in "${servers[@]}"; do kill -9 "$pid" 2>/dev/null || true; done' EXIT

type curl python3 >/dev/null || { echo "curl or python3 is missing."; exit 77; }

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$ROOT/tests/server" # for protobuf.py

# All times, whenever fixtures were made. The store keeps raw data for ever in these tests.
always='from=1980-01-01&to=now%2B1d'
cpu='process_cpu:cpu:nanoseconds:cpu:nanoseconds'
printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n' >keep.yaml

# start_server NAME [options]: sets $url, $pid; its stderr is in NAME.log.
start_server() {
    local log=$1.log
    shift
    : >"$log"
    "$ASSAY" server --listen 127.0.0.1:0 "$@" 2>"$log" &
    pid=$!
    servers+=("$pid")
    local tries=0
    until url=$(sed -n -e 's/^assay: serving on //p' \
        -e 's/.*"message":"serving on \([^"]*\)".*/\1/p' "$log") && [ -n "$url" ]; do
        if ! kill -0 "$pid" 2>/dev/null || [ $((tries += 1)) -gt 1200 ]; then
            cat "$log" >&2
            return 1
        fi
        sleep 0.05
    done
}

stop_server() {
    kill -TERM "$pid"
    wait "$pid"
}

# push FILE QUERY [curl options]: prints the answer, fails unless it is 200.
push() {
    local file=$1 query=$2
    shift 2
    curl -sS --fail-with-body "$@" --data-binary @"$file" "$url/api/v1/push?$query"
}

get() { curl -sS --fail-with-body "$url$1"; }

# rpc METHOD JSON
rpc() {
    curl -sS --fail-with-body -H 'Content-Type: application/json' -d "$2" \
        "$url/querier.v1.QuerierService/$1"
}

# status WANTED curl-arguments...: the answer's body is in answer.txt
status() {
    local wanted=$1 got
    shift
    got=$(curl -sS -o answer.txt -w '%{http_code}' "$@")
    if [ "$got" != "$wanted" ]; then
        echo "Wanted $wanted, got $got from: $*" >&2
        cat answer.txt >&2
        return 1
    fi
}

# json FILE EXPRESSION: a Python expression over the document `d` has to hold, or is printed.
json() {
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
r = eval("(" + sys.argv[2] + ")")
if r is False: sys.exit(f"{sys.argv[2]} does not hold in {json.dumps(d)[:2000]}")
if r is not True: print(r)' "$1" "$2"
}
