# SPDX-License-Identifier: Apache-2.0
# What processes hold, by the agent: a level that the server has by service, also of two processes of
# one service together, and that the agent's metrics show.
. "$ROOT/tests/agent/common.bash"
type python3 jq >/dev/null || { echo "python3 or jq is missing."; exit 77; }

cat >holder.py <<'END'
import ctypes, sys, time
ctypes.CDLL(None).prctl(1, 9)  # it ends with the test
held = None
for line in sys.stdin:
    held = b"\1" * (int(line) << 20)
    until = time.process_time() + 0.5
    while time.process_time() < until:  # it is sampled, by which the agent knows it
        pass
END
start_server server --data store
echo "rss_interval: 10s" >>generous.yaml
start_agent one -c generous.yaml
need_host one
status() { "$ASSAY" agent status --data "$PWD/one" --json; }
until status | jq -e '.collectors | has("cpu")' >/dev/null; do sleep 0.1; done
if ! status | jq -e '.collectors | has("rss")' >/dev/null; then
    echo "No collector of resident memory here: $(status | jq -r .shortcoming)"
    exit 77
fi

mkfifo first second
for name in first second; do
    OTEL_SERVICE_NAME=rss-$$ python3 holder.py <$name &
    agents+=("$!") # ends with the test
done
exec 5>first 6>second
# Its last level on the server, in MiB.
value() { # TYPE FRAME
    curl -sS --fail-with-body --get --data-urlencode "query=memory:$1:bytes:space:bytes{service_name=\"rss-$$\"}" \
        "$url/api/v1/top?from=now-3m&to=now%2B1m&limit=100&agg=last" >top.json 2>error.txt || { echo 0; return; }
    jq --arg name "$2" '[.functions[] | select(.function == $name) | .cum] | add // 0 | . / 1048576 | round' top.json
}
reach() { # FROM TO TYPE FRAME
    local tries=0 got=0
    until got=$(value "$3" "$4") && [ "$got" -ge "$1" ] && [ "$got" -le "$2" ]; do
        if [ $((tries += 1)) -ge 240 ]; then
            echo "$3 of $4 is $got MiB, not $1 to $2"
            cat top.json one.log
            status | jq .
            return 1
        fi
        sleep 0.5
    done
    echo "$3 of $4: $got MiB ($1 to $2 wanted)"
}
echo 200 >&5
echo 100 >&6
reach 295 350 rss "[anonymous memory]"
reach 295 350 rss_pss "[anonymous memory]"
reach 1 100000 rss_cgroup "[cgroup]" || [ ! -d /sys/fs/cgroup/memory ] # the root has none
metric() { # TYPE: of this service, in MiB
    curl -sS --unix-socket one/agent.sock http://agent/metrics |
        sed -n "s/^assay_agent_service_memory_bytes{service=\"rss-$$\",type=\"$1\"} //p" | awk '{ print int($1 / 1048576) }'
}
got=$(metric rss)
echo "metrics: $got MiB"
[ "$got" -ge 295 ] && [ "$got" -le 400 ]
# Given back by one of them.
echo 0 >&5
reach 95 150 rss "[anonymous memory]"
status | jq -c '{losses, collectors}'
