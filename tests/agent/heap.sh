# SPDX-License-Identifier: Apache-2.0
# Heap profiles by the agent: of every process that has the memory probes, with nothing to configure. What a
# program holds is the level that the server shows, also long after it was allocated, until the program
# frees it, runs another program or ends.
. "$ROOT/tests/agent/common.bash"
type gcc python3 jq >/dev/null || { echo "gcc, python3 or jq is missing."; exit 77; }

gcc -O2 -g -o holder-$$ "$ROOT/tests/heap/holder.c"
library=$(dirname "$ASSAY")/sdk/libassay_heap.so

start_server server --data store
echo "symbolize: host" >>generous.yaml
start_agent one -c generous.yaml
need_host one
status() { "$ASSAY" agent status --data "$PWD/one" --json; }
until status | jq -e '.collectors | has("cpu")' >/dev/null; do sleep 0.1; done
if ! status | jq -e '.collectors | has("heap")' >/dev/null; then
    echo "No heap collector here: $(status | jq -r .shortcoming)"
    exit 77
fi

mkfifo go
LD_PRELOAD=$library ASSAY_HEAP_RATE=100000 ./holder-$$ <go >said &
subject=$!
agents+=("$subject") # ends with the test
exec 5>go
tell() { # COMMAND: carried out when it returns
    local lines
    lines=$(wc -l <said)
    echo "$*" >&5
    until [ "$(wc -l <said)" -gt "$lines" ]; do sleep 0.05; done
}
# What the server has of a function, in MiB: the last level, or the sum of a flow.
value() { # TYPE FUNCTION [AGG]
    curl -sS --fail-with-body --get --data-urlencode "query=$1{service_name=\"holder-$$\"}" \
        "$url/api/v1/top?from=now-3m&to=now%2B1m&limit=100${3:+&agg=$3}" >top.json 2>error.txt || { echo 0; return; }
    jq --arg name "$2" '[.functions[] | select(.function == $name) | .cum] | add // 0 | . / 1048576 | round' top.json
}
# Within five standard deviations: sqrt(MiB * 0.5) MiB at the library's interval of 512 KiB.
near() { awk -v got="$1" -v wanted="$2" 'BEGIN { d = got - wanted; exit !(d * d <= 25 * (wanted * 0.5 + 0.1)) }'; }
reach() { # WANTED TYPE FUNCTION AGG
    local tries=0 got=0
    until got=$(value "$2" "$3" "${4:-}") && near "$got" "$1"; do
        if [ $((tries += 1)) -ge 240 ]; then
            echo "$2 of $3 is $got MiB, not $1"
            cat top.json one.log
            return 1
        fi
        sleep 0.5
    done
    echo "$2 of $3: $got MiB ($1 wanted)"
}

# Allocations before the agent has found the probes are not seen: wait until it has.
tries=0
until tell churn 64 && [ "$(status | jq .collectors.heap.runs)" -gt 0 ]; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.1
done

tell hold 400
reach 400 memory:inuse_space:bytes:space:bytes site_hold last
tell hold 100
reach 500 inuse_space site_hold last
reach 500 alloc_space site_hold
# Freed by another function, and nothing was allocated since.
tell drop 300
reach 200 inuse_space site_hold last
echo "in later windows:"
sleep 21
reach 200 inuse_space site_hold last
[ "$(value inuse_space site_churn last)" -le 1 ]

# Another program under the same pid holds nothing of it, and the new one is seen from its first allocation on.
echo exec >&5
until [ "$(tail -n 1 said)" = started ]; do sleep 0.05; done
tell hold 50
reach 50 inuse_space site_hold last

status | jq -c '{losses, collectors}'
stop_agent
