# SPDX-License-Identifier: Apache-2.0
# Agents and servers of this version with those of earlier ones, which are built from the history: the
# last before HTTP/2 and gRPC, and the first with both. What an agent has taken arrives once: while an
# old server is killed, when the new one replaces it, and from the spool of an old agent.
. "$ROOT/tests/agent/common.bash"
type meson ninja git >/dev/null || { echo "meson, ninja or git is missing."; exit 77; }
client() { python3 "$ROOT/tests/server/grpc.py" "$1" "${url#http*://}" "$FIXTURES" "${@:2}"; }
new=$ASSAY new_feed=$AGENT_FEED

# build COMMIT: its program and its feed, in the directory COMMIT. $OLD_BUILDS may have it already.
build() {
    if [ -d "${OLD_BUILDS:-}/$1/build" ]; then
        ln -s "$OLD_BUILDS/$1" "$1"
        return
    fi
    git -C "$ROOT" cat-file -e "$1^{commit}" 2>/dev/null || {
        echo "This checkout's history doesn't have the commit $1."
        exit 77
    }
    git clone -q --no-checkout "$ROOT" "$1"
    git -C "$1" checkout -q "$1"
    cp -r "$ROOT/web/node_modules" "$1/web/node_modules"
    (
        cd "$1"
        export HOME=$real_home
        meson setup build -Dtests=true >setup.log 2>&1
        ninja -C build assay tests/agent-feed >build.log 2>&1
    ) || { tail -n 5 "$1"/*.log; echo "The commit $1 can't be built here."; exit 77; }
}
real_home=$(getent passwd "$(id -u)" | cut -d: -f6)

feed() { # PROGRAM OPTION... COUNT: sets $feed; it sends one.otlp so many times.
    local program=$1 options=("${@:2:$#-2}") count=${*: -1}
    rm -f input
    mkfifo input
    "$program" -t 20000 -b one.otlp "${options[@]}" "http://$address" spool "$count" 15 <input >>feed.out 2>>feed.err &
    feed=$!
    servers+=("$feed")
    exec 8>input
}
end_feed() {
    exec 8>&-
    wait "$feed"
    tail -n 1 feed.out >figures.json
}
until_true() {
    local tries=0
    until "$@"; do
        if [ $((tries += 1)) -gt 2400 ]; then
            echo "It never came true: $*" >&2
            tail -n 20 feed.err ./*.log >&2
            return 1
        fi
        sleep 0.05
    done
}
put_all() { [ "$(grep -c '^put' feed.out)" -ge "$1" ]; }
is_sent() { put_all "$1" && [ -z "$(find spool -maxdepth 1 -name '*.batch')" ]; }
fails() { grep -q "doesn't accept profiles" feed.err; }
begin() { # NAME: a service's profile that is sent
    rm -rf spool
    : >feed.out
    : >feed.err
    client body "$1" 1000 one.otlp
}
kill_server() {
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
}
again() { # NAME PROGRAM: at the same address
    ASSAY=$2 start_server "$1" --data store -c keep.yaml --listen "$address" 8>&-
    url=http://$address
}
# The new server takes over what an old one has stored, at the same address.
replace() { # PROGRAM
    stop_server
    "$1" store export store store.export >/dev/null
    rm -rf store
    "$new" store import store store.export >/dev/null
    again replaced "$new"
}

# killed NAME FEED PROGRAM OPTION...: 60 batches, while the server is killed three times.
killed() {
    local name=$1 sender=$2 program=$3
    begin "$name"
    feed "$sender" "${@:4}" 60
    for round in 1 2 3; do
        until_true put_all $((round * 15))
        kill_server
        again "$name$round" "$program"
    done
    until_true is_sent 60
    end_feed
    json figures.json 'd["sent"] == 60 and d["upload_refused"] == 0 and d["refused"] == 0 and d["dropped"] == 0'
    client has "$name" 60000
}

# A real agent and a real server: the time of a program, symbols, and a recording on demand.
sampled() { # NAME AGENT SERVER
    local name=$1 agent_program=$2 server_program=$3
    ASSAY=$server_program start_server "$name-server" --data "$name-store" -c keep.yaml
    cp generous.yaml "$name.yaml"
    printf 'recordings: {rate_max: 999, seconds_max: 6}\n' >>"$name.yaml"
    ASSAY=$agent_program start_agent "$name" --config "$name.yaml"
    need_host "$name"
    OTEL_SERVICE_NAME="$name-$$" ./busy 3 >used.txt
    OTEL_SERVICE_NAME="asked-$name-$$" ./busy 600 &
    local busy=$!
    servers+=("$busy")
    until_true seen "asked-$name-$$"
    "$server_program" recording start --server "$url" --service "asked-$name-$$" --rate 199 --seconds 2 --wait >recording.txt
    grep -q 'is done with ' recording.txt
    # The server asks for symbols of what runs here, and the agent sends them.
    until_true grep -q 'Uploaded the symbols of ' "$name.log"
    kill "$busy"
    wait "$busy" 2>/dev/null || true
    ASSAY=$agent_program status_of "$name"
    stop_agent
    about "$(seconds "{service_name=\"$name-$$\"}")" "$(cat used.txt)" "$name"
    json "$name.status.json" 'd["upload_failures"] == 0 and d["spool_dropped"] == 0'
    stop_server
}
seen() { services >services.json && grep -q "\"$1\"" services.json; }

one=b27b72a # HTTP/1.1 alone
both=2104278 # HTTP/2, and an agent with `protocol: grpc`
for commit in "$one" "$both"; do
    build "$commit"
    old=$PWD/$commit/build/assay
    ASSAY=$old start_server "first-$commit" --data store -c keep.yaml
    address=${url#http://}
    killed "http-$commit" "$new_feed" "$old"
    if [ "$commit" = "$both" ]; then
        killed "grpc-$commit" "$new_feed" "$old" -p
    else
        # Without HTTP/2 the server takes nothing by gRPC: the batches wait for the next version.
        begin "waiting"
        feed "$new_feed" -p 20
        until_true fails
        until_true put_all 20
    fi
    replace "$old"
    if [ "$commit" = "$one" ]; then
        until_true is_sent 20
        end_feed
        client has waiting 20000
    fi
    client has "http-$commit" 60000
    stop_server
    rm -rf store
    sampled "new-agent-$commit" "$new" "$old"
    sampled "old-agent-$commit" "$old" "$new"
done

# The old feed sends to the new server, and what it leaves in its spool is the new agent's to send.
old_feed=$PWD/$both/build/tests/agent-feed
start_server new --data store -c keep.yaml
address=${url#http://}
killed old-http "$old_feed" "$new"
killed old-grpc "$old_feed" "$new" -p
begin left
kill_server
feed "$old_feed" 20
until_true put_all 20
kill -9 "$feed"
wait "$feed" 2>/dev/null || true
exec 8>&-
again left "$new"
feed "$new_feed" 0
until_true is_sent 20
end_feed
client has left 20000
stop_server
