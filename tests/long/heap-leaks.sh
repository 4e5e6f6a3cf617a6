# SPDX-License-Identifier: Apache-2.0
# A leak planted in real programs is the site that holds most of what they allocated while they were
# recorded, under their own load: Redis with jemalloc, PostgreSQL, nginx, Node, Rust, numpy.
# (C++ and CPython: capture-heap-real.)
ASSAY_SAMPLERS=bpf . "$ROOT/tests/capture/common.bash"
. "$capture/servers.bash"
need gcc python3

library=$(dirname "$ASSAY")/sdk/libassay_heap.so
gcc -O2 -g -shared -fPIC -o plant.so "$ROOT/tests/heap/plant.c" -ldl
leaking=(env LD_PRELOAD="$library:$PWD/plant.so")

# holds_most SITE BYTES FILE: of memory that is live, SITE holds most, and at least so much.
holds_most() {
    "$ASSAY" report -n 0 -t inuse_space -f json "$3" >held.json
    python3 - "$1" "$2" <<'PY'
import json, sys
rows = json.load(open("held.json"))["rows"]
sites = sorted(((row["flat"], row["function"]) for row in rows), reverse=True)[:5]
print(sites)
held, function = sites[0]
assert sys.argv[1] in function and held >= float(sys.argv[2]), sys.argv[1:]
PY
}

# server NAME BYTES PID LOAD...: records the process while the load runs.
server() {
    local name=$1 bytes=$2 pid=$3 recorder
    shift 3
    "$ASSAY" record --mode heap -p "$pid" -o held.pb.gz 2>said &
    recorder=$!
    started+=("$recorder")
    wait_until 60 is_recording "$recorder" || fail "$name: nothing attached"
    "$@" >load.said 2>&1 || { cat load.said && fail "the load of $name"; }
    kill -INT "$recorder"
    wait "$recorder" || { cat said && fail "$name"; }
    sed 's/^/# /' said
    check "$name" holds_most plant_leak "$bytes" held.pb.gz
    check "$name loses nothing" grep -q ' 0 lost, in' said
}

if have_redis && type redis-benchmark >/dev/null 2>&1; then
    around=("${leaking[@]}")
    start_redis redis.sock
    server Redis 20e6 "$server" redis-benchmark -s redis.sock -q -n 100000 -c 4 -t get,set
    end_process "$server"
else
    skip_case Redis "redis-server is not installed"
fi

if have_postgres; then
    around=("${leaking[@]}")
    # Its user reads what is preloaded.
    chmod 755 . plant.so
    start_postgres
    pgbench -i -q -s 1 "${postgres[@]}" >/dev/null 2>&1
    # One session, so that it is known which process serves it.
    mkfifo script
    psql "${postgres[@]}" -qAt <script >/dev/null &
    started+=("$!")
    exec 5>script
    echo 'select 1;' >&5
    backend() { psql "${postgres[@]}" -qAt -c "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"; }
    there() { [ -n "$(backend)" ]; }
    wait_until 30 there
    statements() {
        for ((i = 0; i < 20000; i++)); do echo "select abalance from pgbench_accounts where aid = $i;"; done >&5
        idle() { [ "$(psql "${postgres[@]}" -qAt -c "select count(*) from pg_stat_activity where query like '%aid = 19999;' and state = 'idle'")" = 1 ]; }
        wait_until 300 idle
    }
    server PostgreSQL 10e6 "$(backend)" statements
    exec 5>&-
    end_process "$server"
else
    skip_case PostgreSQL "PostgreSQL is not installed"
fi

if have_nginx && type wrk >/dev/null 2>&1; then
    around=("${leaking[@]}")
    start_nginx
    worker=$(cat "/proc/$server/task/$server/children")
    server nginx 5e6 "${worker% }" wrk -t 1 -c 1 -d 10 "$address"
    end_process "$server"
else
    skip_case nginx "nginx and wrk are not installed"
fi

if type node wrk >/dev/null 2>&1; then
    port=$(free_port)
    cat >serve.js <<'END'
const http = require("http");
http.createServer((request, response) => {
    response.end(JSON.stringify(Array.from({ length: 50 }, (_, i) => ({ i, url: request.url }))));
}).listen(Number(process.argv[2]), "127.0.0.1");
END
    "${leaking[@]}" node serve.js "$port" >node.said 2>&1 &
    served=$!
    started+=("$served")
    wait_until 20 answers "$port" || { cat node.said && fail Node; }
    server Node 5e6 "$served" wrk -t 1 -c 1 -d 10 "http://127.0.0.1:$port/"
    end_process "$served"
else
    skip_case Node "Node.js and wrk are not installed"
fi

if type rustc >/dev/null 2>&1; then
    rustc -O -g -o leak-rust "$ROOT/tests/heap/leak.rs" 2>rustc.said || { cat rustc.said && fail Rust; }
    "$ASSAY" record --mode heap -o rust.pb.gz -- ./leak-rust 50000 >/dev/null 2>said || true
    sed 's/^/# /' said
    # The line after the title, which says where most is live.
    check "Rust" bash -c 'sed -n "/live at the end/{n;p}" said | grep -E "9[0-9]\.[0-9]%|100\.0%" | grep leak::leak_one'
else
    skip_case Rust "rustc is not installed"
fi

numpy=
for python in python3 /usr/bin/python3; do
    ! "$python" -c 'import numpy' 2>/dev/null || numpy=$python
done
if [ -n "$numpy" ]; then
    "$ASSAY" record --mode heap -o numpy.pb.gz -- "$numpy" "$ROOT/tests/heap/leak_numpy.py" 2>said || fail numpy
    sed 's/^/# /' said
    check "numpy: Python's function is named" grep -q 'leak_numpy.py:leak_one' said
else
    skip_case numpy "numpy is not installed"
fi
