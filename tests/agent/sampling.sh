# SPDX-License-Identifier: Apache-2.0
# Rates and collectors of a running agent: ordered by the server within the limits of the host, kept over
# a restart, recorded in the data; and settings that SIGHUP reads again.
. "$ROOT/tests/agent/common.bash"
. "$ROOT/tests/agent/feed.bash"
trap 'for p in "${agents[@]}" "${servers[@]}" "${feeds[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT
type jq zstd >/dev/null || { echo "jq or zstd is missing."; exit 77; }

settings() { # further lines
    cp generous.yaml agent.yaml
    echo 'rate: 19' >>agent.yaml
    echo 'sampling: {rate_max: 50, wall_rate_max: 30}' >>agent.yaml
    printf '%s\n' "$@" >>agent.yaml
}
status() { "$ASSAY" agent status --json --data "$PWD/one"; }
await() { # WHAT JQ-CONDITION
    local tries=0
    until status >status.json && jq -e "$2" status.json >/dev/null; do
        if [ $((tries += 1)) -ge 600 ]; then
            echo "Never: $1"
            cat status.json one.log
            return 1
        fi
        sleep 0.1
    done
}
order() { "$ASSAY" control sampling --server "$url" "$@" >order.txt; }
again() { # the same agent, after a restart
    stop_agent
    start_agent one -c agent.yaml
}

start_server server --data store
settings 'wall: false'
start_agent one -c agent.yaml
need_host one
await "its own rate" '.rate_hz == 19 and .sampling.ordered == false'

# An order within the limits, then one beyond them.
order --rate 7 -a '{host=~".+"}' -m 'save CPU'
await "the ordered rate" '.rate_hz == 7 and .rate_wanted_hz == 7 and .sampling.ordered and (.sampling.cut | not)'
[[ $("$ASSAY" agent status --data "$PWD/one") == *'7 times a second'*'ordered by the server: save CPU'* ]]
again
await "the rate after a restart" '.rate_hz == 7 and .sampling.ordered'
order --rate 900 --wall on
await "the limit of the host" '.rate_hz == 50 and .sampling.cut and (.sampling.wall | not)'
order --rate 9 -a '{host="elsewhere"}'
order --reset
await "its own rate again" '.rate_hz == 19 and (.sampling.ordered | not)'
order --rate 9 -a '{host="elsewhere"}'
await "another agent's order" '.rate_hz == 19 and (.sampling.ordered | not)'

# SIGHUP: a valid file counts, an invalid one changes nothing.
settings 'wall: false' 'watchdog: 0s'
sed -i 's/^rate: .*/rate: 31/' agent.yaml
kill -HUP "$agent"
await "the rate of the file" '.rate_hz == 31'
echo 'rulez: []' >>agent.yaml
sed -i 's/^rate: .*/rate: 5/' agent.yaml
kill -HUP "$agent"
tries=0
until grep 'keeps its settings' one.log >/dev/null; do [ $((tries += 1)) -lt 200 ]; sleep 0.1; done
[ "$(status | jq .rate_hz)" = 31 ]

# Wall time, where the kernel can measure it: loaded on demand, off and on by order.
settings 'wall: true'
kill -HUP "$agent"
await "wall time wanted" '.sampling.wall and .rate_hz == 19'
if status | jq -e 'any(.collectors | keys[]; . == "wall")' >/dev/null; then
    await "wall time on" '.collectors.wall.on'
    order --wall off
    await "wall time off" '.collectors.wall.on | not'
    order --wall on --wall-rate 200
    await "wall time on again" '.collectors.wall.on and .sampling.wall_rate == 30 and .sampling.cut'
    order --reset
else
    tail -n 3 one.log
fi

stop_agent
stop_server

# An agent that has an order from before keeps it without the server, and says so in each window.
mkdir two && printf 'agent two-1\nsampling 23 - 0 a closer look\n' >two/control
echo ok >mode
start_fake
url=http://127.0.0.1:$port
start_agent two -c agent.yaml
tries=0
until grep ' stored ' fake.log >/dev/null; do [ $((tries += 1)) -lt 600 ]; sleep 0.1; done
stop_agent
for body in fake.log.d/*; do
    case $body in
    *.zstd) zstd -dqc "$body" >body ;;
    *) cp "$body" body ;;
    esac
    "$ASSAY" info body >>comments.txt
done
grep 'sampling: 23 Hz.*ordered by the server: a closer look' comments.txt >/dev/null
