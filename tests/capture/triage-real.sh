# SPDX-License-Identifier: Apache-2.0
# `assay triage` names why real programs are slow: a row of PostgreSQL that another transaction keeps
# locked, a command that blocks Redis, a Go server that waits for another one, or for its own mutex, and
# nginx whose CPU another cgroup has.
# Chance: what a program does at a moment, and what else runs on this machine, differ from run to run.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
. "$capture/servers.bash"
need python3
tried=0

verdict() { # FILE PYTHON-CONDITION on d
    python3 - "$1" "$2" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
print({key: d[key] for key in ("verdict", "ns", "stack", "holder", "lock", "ran_instead") if key in d})
assert eval(sys.argv[2]), sys.argv[2]
PY
}

# PostgreSQL: four sessions wait for a row that a fifth has updated and not committed.
if have_postgres; then
    tried=1
    start_postgres
    ask() { psql "${postgres[@]}" -qAt "$@"; }
    ask -c 'create table account(id int, v int)' -c 'insert into account values (1, 0)'
    # It reads its next command from a pipe that nobody writes to.
    mkfifo commands
    ask <commands >/dev/null &
    started+=("$!")
    exec 5>commands
    echo 'begin; update account set v = v + 1 where id = 1;' >&5
    holds() { [ "$(ask -c "select count(*) from pg_stat_activity where state = 'idle in transaction'")" = 1 ]; }
    wait_until 30 holds
    for _ in 1 2 3 4; do
        ask -c 'update account set v = v + 1 where id = 1' >/dev/null &
        started+=("$!")
    done
    waits() { [ "$(ask -c "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")" = 4 ]; }
    wait_until 30 waits
    pids=$(ask -c "select string_agg(pid::text, ',') from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
    "$ASSAY" triage -p "$pids" -d 2 --json >postgres.json
    check "PostgreSQL: sessions wait for a row that is locked" verdict postgres.json \
        'd["verdict"] == "lock" and d["ns"]["lock"] > 7e9 and any("Lock" in f for f in d["stack"])'
    exec 5>&-
    end_process "$server"
else
    echo "(no PostgreSQL here)"
fi

# Redis: one command keeps its only thread.
if have_redis; then
    tried=1
    start_redis redis.socket --enable-debug-command yes
    redis-cli -s redis.socket debug sleep 60 >/dev/null 2>&1 &
    started+=("$!")
    sleeps() { grep -qs nanosleep "/proc/$server/wchan" "/proc/$server/stack"; }
    wait_until 20 sleeps
    redis-cli -s redis.socket get key >/dev/null 2>&1 &
    started+=("$!")
    "$ASSAY" triage -p "$server" -d 2 --json >redis.json
    check "Redis: a command sleeps in the thread that serves all" verdict redis.json \
        'd["verdict"] == "sleeping" and d["ns"]["sleeping"] > 1.8e9 and any("sleep" in f for f in d["stack"])'
    kill -9 "$server"
    # A script that never ends: it computes, and all others wait.
    start_redis redis2.socket
    redis-cli -s redis2.socket eval 'while true do end' 0 >/dev/null 2>&1 &
    started+=("$!")
    computes() { [ "$(awk '{ print $14 }' "/proc/$server/stat")" -gt 20 ]; }
    wait_until 60 computes
    "$ASSAY" triage -p "$server" -d 2 --json >redis.json
    check "Redis: a script computes" verdict redis.json \
        'd["ns"]["computing"] + d["ns"]["starved"] > 1.8e9 and d["verdict"] in ("computing", "starved")'
    kill -9 "$server"
else
    echo "(no Redis here)"
fi

# Go: requests of a server wait for another server; and for a mutex of their own.
if GO111MODULE=off CGO_ENABLED=0 go build -o downstream "$subjects/downstream.go" 2>go.said; then
    tried=1
    serves() { # NAME ARGUMENT...: sets `server` and `served`, its address
        : >"$1.address"
        ./downstream "${@:2}" >"$1.address" &
        server=$!
        started+=("$server")
        wait_until 30 test -s "$1.address"
        served=$(cat "$1.address")
    }
    # busy PID: has it used CPU time?
    busy() { [ "$(awk '{ print $14 + $15 }' "/proc/$1/stat")" -gt 5 ]; }
    serves backend backend
    serves shop shop "$served"
    ./downstream load "$served" 8 &
    started+=("$!")
    wait_until 60 busy "$server"
    "$ASSAY" triage -p "$server" -d 2 --json --flame shop.html >shop.json
    check "Go: a server waits for another one" verdict shop.json \
        "d['verdict'] == 'network' and d['ns']['network'] > 8e9 and 'main.askBackend' in d['stack'] and '-p $server ' in d['next']"
    check "... with a flame graph of it" grep 'main.askBackend' shop.html
    for pid in "${started[@]}"; do end_process "$pid"; done
    started=()
    serves lock lock
    ./downstream load "$served" 6 &
    started+=("$!")
    wait_until 60 busy "$server"
    "$ASSAY" triage -p "$server" -d 2 --json >mutex.json
    check "Go: requests wait for a mutex" verdict mutex.json \
        'd["verdict"] == "lock" and d["ns"]["lock"] > 5e9 and d["locks"][0]["waiter"] == "main.updateStock"'
    for pid in "${started[@]}"; do end_process "$pid"; done
    started=()
else
    echo "(Go cannot build here: $(tail -n 1 go.said))"
fi

# nginx shares its one CPU with a cgroup that has nearly all of it.
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$unified/assay-triage-$$
if have_nginx && type wrk >/dev/null 2>&1 && [ -n "$unified" ] && mkdir "$group" 2>/dev/null; then
    tried=1
    around=(taskset -c 0)
    start_nginx 20000
    around=()
    # Each in a session of its own, among which the kernel may divide a CPU.
    for _ in 1 2 3 4 5 6; do
        (echo 0 >"$group/cgroup.procs"; exec setsid taskset -c 0 sh -c 'while :; do :; done') &
        started+=($!)
    done
    wrk -t 1 -c 16 -d 60 -H 'Accept-Encoding: gzip' "$address" >/dev/null 2>&1 &
    started+=("$!")
    worker=$(pgrep -P "$server")
    "$ASSAY" triage -p "$worker" -d 4 --json >nginx.json
    for pid in "${started[@]}"; do end_process "$pid"; done
    started=()
    until rmdir "$group"; do sleep 0.1; done
    check "nginx: another cgroup has its CPU" verdict nginx.json \
        "d['verdict'] == 'starved' and d['ns']['starved'] > 2e9 and any(e.get('cgroup', '').endswith('${group##*/}') for e in d['ran_instead'])"
else
    echo "(no nginx, wrk or writable cgroup here)"
fi
[ "$tried" = 1 ] || skip_all "None of PostgreSQL, Redis, Go and nginx is installed."
