# SPDX-License-Identifier: Apache-2.0
# Agents, the switch and recordings as the API has them: who may what, what is remembered over a
# restart, what stands in the audit log, and that recordings don't count twice.
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

for role in ingest read admin; do
    "$ASSAY" token create "$role" --file tokens -r "$role" 2>/dev/null >"$role.token"
done
"$ASSAY" token create stranger --file tokens --tenant two -r admin,ingest,read 2>/dev/null >stranger.token
start_server control --data store --tokens tokens -c keep.yaml
as() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$1.token")" "${@:2}"; }
order() { as "${2:-admin}" -H 'Content-Type: application/json' -d "$1" "$url/api/v1/${3:-control}"; }
report() { # WHO AGENT HOST [more members]
    local labels='{}'
    [ "$2" != a1 ] || labels='{"region":"eu"}'
    as "$1" -d "{\"agent\":\"$2\",\"host\":\"$3\",\"version\":\"9\",\"labels\":$labels,\"sent_at\":$(date +%s)${4:+,$4}}" \
        "$url/api/v1/agents/report"
}

# Two agents report; their figures are there, whatever they are called, and nothing that is no figure.
report ingest a1 web1 '"status":{"cpu_share":0.004,"new_figure":7,"losses":{"ring_full":3},"deep":{"deeper":{"deepest":1}},"Odd Key":1,"list":[1,2]}' >first.json
jq -e '.capture == "on" and .recordings == []' first.json >/dev/null
report ingest a2 db1 >/dev/null
as read "$url/api/v1/agents" >agents.json
jq -e 'length == 2 and (map(.agent) | sort == ["a1", "a2"])' agents.json >/dev/null
jq -e '.[] | select(.agent == "a1") | .status == {"cpu_share":0.004,"new_figure":7,"losses":{"ring_full":3},"deep":{}}
    and .labels == {"agent":"a1","host":"web1","region":"eu"} and (.silent | not)
    and (.clock_offset_seconds | fabs) < 30' agents.json >/dev/null
"$ASSAY" agents --server "$url" --token-file read.token >agents.txt
[[ $(cat agents.txt) == *web1*a1* ]]
# Another tenant has none of them, and gives them no orders.
[ "$(as stranger "$url/api/v1/agents")" = '[]' ]
order '{"capture":"off"}' stranger >/dev/null
report ingest a1 web1 >orders.json
jq -e '.capture == "on"' orders.json >/dev/null

# What agents ask each second has no body while there is nothing new.
version=$(jq -r .version orders.json)
ask() { as ingest -o answer.txt -w '%{http_code}' -H "If-None-Match: \"$1\"" "$url/api/v1/agents/orders?agent=$2"; }
[ "$(ask "$version" a1)" = 304 ] && [ ! -s answer.txt ]
order '{"capture":"off","selector":"{region=\"eu\"}","reason":"a test"}' >control.json
jq -e '.agents.wanted_off == 1 and .agents.not_off_yet == 1 and .rules[0].by == "admin"' control.json >/dev/null
[ "$(ask "$version" a1)" = 200 ]
jq -e '.capture == "off" and .reason == "a test"' answer.txt >/dev/null
[ "$(ask "$version" a2)" = 200 ]
jq -e '.capture == "on"' answer.txt >/dev/null
[ "$(ask "$version" a3 || true)" = 404 ]
report ingest a1 web1 '"capture":"off"' >/dev/null
"$ASSAY" control status --server "$url" --token-file admin.token >status.txt
[[ $(cat status.txt) == *'region="eu"'*'1 don'"'"'t capture'* ]]

# The last word counts: all off but one.
"$ASSAY" control off --server "$url" --token-file admin.token -m everybody >/dev/null
"$ASSAY" control on --server "$url" --token-file admin.token -a '{host="db1"}' >/dev/null
as read "$url/api/v1/agents" >agents.json
jq -e '(map({(.agent): .capture_wanted}) | add) == {"a1": "off", "a2": "on"}' agents.json >/dev/null

# Rates and collectors, for those that match; on disk, in the audit log, and gone when they are reset.
limit_rate() { "$ASSAY" control sampling --server "$url" --token-file admin.token "$@"; }
limit_rate --rate 9 --wall off -a '{host="web1"}' -m 'save CPU' >sampling.txt
[[ $(cat sampling.txt) == *'9 Hz, wall time off'*'host="web1"'*admin*'save CPU'* ]]
report ingest a1 web1 >orders.json
jq -e '.sampling == {"rate":9,"wall":false,"reason":"save CPU"} and .capture == "off"' orders.json >/dev/null
report ingest a2 db1 | jq -e 'has("sampling") | not' >/dev/null
order '{"sampling":{"wall_rate":5}}' >control.json
jq -e '(.sampling | length) == 1 and .sampling[0].sampling == {"wall_rate":5}' control.json >/dev/null
for wrong in '{"sampling":{"rate":0}}' '{"sampling":{"rate":1000}}' '{"sampling":{"colour":1}}' '{"sampling":9}' \
    '{"sampling":{"rate":9},"capture":"on"}' '{"sampling":{"rate":9},"selector":"{"}' '{}'; do
    status 400 -H "Authorization: Bearer $(cat admin.token)" -H 'Content-Type: application/json' -d "$wrong" "$url/api/v1/control"
done
status 403 -H "Authorization: Bearer $(cat read.token)" -H 'Content-Type: application/json' -d '{"sampling":{}}' "$url/api/v1/control"
for wrong in '' '--wall maybe' '--rate 9 --reset'; do
    # shellcheck disable=SC2086
    if limit_rate $wrong 2>error.txt; then exit 1; fi
    [[ $(cat error.txt) == *--* ]]
done
if "$ASSAY" control off --server "$url" --token-file admin.token --rate 9 2>error.txt; then exit 1; fi
[[ $(cat error.txt) == *'for sampling'* ]]

# Recordings: for who matches, and not for who doesn't report.
order '{"service":"shop","rate":999,"seconds":7,"hosts":["db1"],"name":"slow checkout"}' admin recordings >recording.json
id=$(jq -r .id recording.json)
jq -e '.state == "pending" and (.agents | length == 1) and .agents[0].agent == "a2"' recording.json >/dev/null
report ingest a2 db1 >orders.json
jq -e --arg id "$id" '.recordings == [{"id":$id,"name":"slow checkout","service":"shop","rate":999,"seconds":7,"state":"pending","stop":false}]' orders.json >/dev/null
report ingest a1 web1 "\"recordings\":[{\"id\":\"$id\",\"state\":\"done\",\"samples\":5}]" >/dev/null # not its own
report ingest a2 db1 "\"recordings\":[{\"id\":\"$id\",\"state\":\"running\"}]" >/dev/null
status 404 -H "Authorization: Bearer $(cat admin.token)" -H 'Content-Type: application/json' \
    -d '{"service":"shop","hosts":["nowhere"]}' "$url/api/v1/recordings"
for wrong in '{}' '{"service":""}' '{"service":"x","rate":0}' '{"service":"x","seconds":100000}' '{"service":"x","name":"a/b"}' \
    '{"service":"x","selector":"{"}' '{"service":"x","colour":"red"}' '{' '[]' ''; do
    status 400 -H "Authorization: Bearer $(cat admin.token)" -H 'Content-Type: application/json' \
        -d "$wrong" "$url/api/v1/recordings"
done
printf '{"capture":"off","reason":"\xff\xfe"}' >bytes.json # would be longer on disk than it may be
status 400 -H "Authorization: Bearer $(cat admin.token)" -H 'Content-Type: application/json' --data-binary @bytes.json "$url/api/v1/control"
status 415 -H "Authorization: Bearer $(cat admin.token)" -d '{"service":"x"}' "$url/api/v1/recordings"
status 415 -H "Authorization: Bearer $(cat admin.token)" -H 'Content-Type: text/plain' -d '{"capture":"on"}' "$url/api/v1/control"
status 400 -H "Authorization: Bearer $(cat ingest.token)" -d '{"agent":"a b"}' "$url/api/v1/agents/report"
status 413 -H "Authorization: Bearer $(cat ingest.token)" --data-binary @<(head -c 200000 /dev/zero) "$url/api/v1/agents/report"
# A reader sees recordings, and can't order any.
status 403 -H "Authorization: Bearer $(cat read.token)" -H 'Content-Type: application/json' -d '{"service":"x"}' "$url/api/v1/recordings"
[ "$(as read "$url/api/v1/recordings" | jq length)" = 1 ]

# A restart forgets nothing: not even one by kill -9, for what somebody ordered.
kill -9 "$pid"
wait "$pid" || true
start_server control2 --data store --tokens tokens -c keep.yaml
report ingest a1 web1 | jq -e '.capture == "off" and .reason == "everybody" and .sampling.wall_rate == 5' >/dev/null
limit_rate --reset >sampling.txt
report ingest a1 web1 | jq -e 'has("sampling") | not' >/dev/null
report ingest a2 db1 >orders.json
jq -e --arg id "$id" '.capture == "on" and (.recordings | map(.id)) == [$id]' orders.json >/dev/null
stop_server
start_server control3 --data store --tokens tokens -c keep.yaml
as read "$url/api/v1/agents" >agents.json
jq -e 'length == 2 and all(.[]; .status == null)' agents.json >/dev/null
as read "$url/api/v1/recordings/$id" >recording.json
jq -e '.agents[0].state == "running"' recording.json >/dev/null

# Stopping: agents are told.
as admin -X DELETE "$url/api/v1/recordings/$id" >stopped.json
jq -e '.stopped' stopped.json >/dev/null
report ingest a2 db1 >orders.json
jq -e '.recordings[0].stop' orders.json >/dev/null
report ingest a2 db1 "\"recordings\":[{\"id\":\"$id\",\"state\":\"done\",\"samples\":41,\"reason\":\"It was stopped.\"}]" >orders.json
jq -e '.recordings == []' orders.json >/dev/null
"$ASSAY" recording list --server "$url" --token-file read.token >list.txt
[[ $(cat list.txt) == *41*done*"$id"*shop*'slow checkout'* ]]
"$ASSAY" recording show "$id" --server "$url" --token-file read.token >show.txt
[[ $(cat show.txt) == *'is done with 41 samples'*'It was stopped.'* ]]
if "$ASSAY" recording stop r0 --server "$url" --token-file admin.token 2>error.txt; then exit 1; fi
[[ $(cat error.txt) == *'No recording r0'* ]]
# Nobody begins in time.
order '{"service":"shop","wait_seconds":1}' admin recordings >brief.json
tries=0
until as read "$url/api/v1/recordings/$(jq -r .id brief.json)" | jq -e '.state == "expired"' >/dev/null; do
    [ $((tries += 1)) -lt 300 ]
    sleep 0.1
done

# Samples of a recording are there for who asks for it, and are not added to the others.
printf 'main;work 100\n' >usual.folded
printf 'main;work 7\n' >close.folded
as ingest --data-binary @usual.folded "$url/api/v1/push?service=shop&from=now-10s" >/dev/null
as ingest --data-binary @close.folded "$url/api/v1/push?service=shop&from=now-10s&recording=$id&recording_name=slow" >/dev/null
total() { as read --get --data-urlencode "query=cpu$1" "$url/api/v1/top?$always" | jq .total; }
usual=$(total '{service_name="shop"}')
close=$(total "{recording=\"$id\"}")
[ "$close" != "$usual" ] && [ "$((usual / 100))" = "$((close / 7))" ]
[ "$(total '{recording_name="slow"}')" = "$close" ]
[ "$(total '{recording=~".*"}')" = "$((usual + close))" ]
as read --get --data-urlencode 'query={service_name="shop"}' "$url/api/v1/label/recording/values?$always" >values.json
jq -e --arg id "$id" '. == [$id]' values.json >/dev/null

as read "$url/metrics" >metrics.txt
grep -x 'assay_sampling_orders 0' metrics.txt >/dev/null
grep -x 'assay_recordings{state="done"} 1' metrics.txt >/dev/null
grep -x 'assay_agents{state="reporting"} 2' metrics.txt >/dev/null || grep -x 'assay_agents{state="silent"} 2' metrics.txt >/dev/null

# All that was ordered is in the audit log, with who did it; what came to nothing as well.
as admin "$url/api/v1/audit" >audit.json
for action in 'capture off' 'capture on' sampling 'recording start' 'recording stop'; do
    jq -e --arg action "$action" 'any(.[]; .action == $action and .actor == "admin")' audit.json >/dev/null
done
jq -e 'any(.[]; .action == "sampling" and .outcome == "done" and (.target | test("web1.*9 Hz, wall time off: save CPU")))' audit.json >/dev/null
jq -e 'any(.[]; .action == "recording start" and (.outcome | test("No reporting agent")))' audit.json >/dev/null
stop_server

# Orders that can't be read are no reason to go on as if there were none.
printf '{"version":1,"tenants":[{"name"' >store/control.json
if "$ASSAY" server --listen 127.0.0.1:0 --data store 2>broken.log; then exit 1; fi
[[ $(cat broken.log) == *control.json* ]]
