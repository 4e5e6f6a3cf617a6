# SPDX-License-Identifier: Apache-2.0
# What is pushed comes back: the same functions and numbers as in the file, in every format, from
# both stores, and after a restart.
. "$ROOT/tests/server/common.bash"

. "$ROOT/tests/server/answers.bash"

start_server memory --in-memory -c keep.yaml
push "$file" 'service=shop&host=h1' >/dev/null
check_answers
stop_server

start_server first --data store -c keep.yaml
push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
json answer.json 'd["windows"] == 14 and "repeated" not in d'
check_answers

# The same again changes nothing; a second server on the same data is refused.
push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
json answer.json 'd["repeated"]'
check_answers
if "$ASSAY" server --listen 127.0.0.1:0 --data store 2>second.log; then exit 1; fi
[ -s second.log ]

# All that was acknowledged is there after a stop, and after a kill.
stop_server
start_server again --data store -c keep.yaml
check_answers
kill -9 "$pid"
wait "$pid" || true
start_server killed --data store -c keep.yaml
check_answers
push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >/dev/null
check_answers

# A directory can be looked at beside the server.
"$ASSAY" store check store
[[ $("$ASSAY" store stats store) == *" 14 windows of "* ]]
if "$ASSAY" store delete store --query '{}' --from 0 --to now 2>error.txt; then exit 1; fi

# The same from the shell.
"$ASSAY" query -u "$url" profile 'cpu{service="shop"}' --from 1980-01-01 -f pprof -o got.pb.gz
"$ASSAY" report got.pb.gz -n 0 -f csv | cmp want.csv -
ask() { "$ASSAY" query -u "$url" "$@" --from 1980-01-01; }
[ "$(ask values endpoint)" = $'/cart\n/page\n/search' ]
[ "$(ask values endpoint -f json)" = '["/cart","/page","/search"]' ]
[ "$(ask types -f csv)" = $'id,sample_type,sample_unit
process_cpu:cpu:nanoseconds:cpu:nanoseconds,cpu,nanoseconds
process_cpu:samples:count:cpu:nanoseconds,samples,count' ]
ask top cpu -n 2 >table.txt
[ "$(sed -n 1,3p table.txt)" = ' flat    cum  function              file
310ms  310ms  runtime.asyncPreempt  runtime/preempt_amd64.s
150ms  150ms  indexbytebody         internal/bytealg/indexbyte_amd64.s' ]
[[ $(tail -n 1 table.txt) == '205 samples in 7 windows of '*' on 1 host; '*'% of the range is covered.' ]]
[ "$(ask callers main.isOdd 'cpu{service="shop"}' | sed -n 1,4p)" = 'flat 110ms, including callees 260ms of 2.13s

Called by:
  cum  caller       file' ]
[ "$(ask timeseries cpu --step 3650d --group-by endpoint -f csv | cut -d, -f3 | tail -n +2 | paste -sd+)" = \
    30000000+450000000+50000000+1600000000 ]
[[ $(ask series 'cpu{endpoint="/cart",tenant="t0"}') == *'endpoint="/cart", host="h1", service_name="shop", tenant="t0"'* ]]
[[ $("$ASSAY" query -u "$url" senders) == *curl* ]]
ask diff cpu -f svg -o diff.svg
[[ $(cat diff.svg) == *'<svg'* ]]
# Exit status 1 is the server's or the network's, with its sentence; 2 is the command line's.
code() { local wanted=$1; shift; local got=0; "$@" >/dev/null 2>error.txt || got=$?; [ "$got" = "$wanted" ]; }
code 1 ask callers nothing cpu
[ "$(cat error.txt)" = 'assay: No stack of the selection has a function "nothing"; names must match exactly, as shown by top.' ]
code 1 "$ASSAY" query -u http://127.0.0.1:1 types
code 2 ask nonsense
code 2 ask callers
code 2 ask top cpu --step 1m
code 2 ask types -f svg
code 2 ask top cpu more
code 2 "$ASSAY" query -u "$url" health --from now
if "$ASSAY" query -u "$url" top 'cpu{' 2>error.txt; then exit 1; fi
grep 'selector is not valid' error.txt >/dev/null
push "$file" 'service=bank' >/dev/null
get "/api/v1/top?query=cpu&$always" >top.json
json top.json 'd["total"] == 2 * 2130000000'
stop_server

# Names that each process makes up for itself are one function, until the originals are asked for.
start_server names --data names-store
for process in 14/1225373914 15/0x0000000800fd7318; do
    printf 'a.Shop$$Lambda$%s.run;slices.Sort[go.shape.int] 5\n' "$process" >stacks.folded
    push stacks.folded 'service=names' >/dev/null
    "$ASSAY" convert stacks.folded -o stacks.pb.gz --original-names
    push stacks.pb.gz 'service=names' >/dev/null
done
of_names='query=samples%7Bservice%3D%22names%22%7D'
for names in readable original; do
    get "/api/v1/top?$of_names&names=$names" >top.json
    json top.json 'sorted(f["function"] + " " + str(f["cum"]) for f in d["functions"]) == sorted(
        ["a.Shop$$Lambda_.run 20", "slices.Sort[...] 20"] if "'$names'" == "readable" else
        ["a.Shop$$Lambda$14/1225373914.run 10", "a.Shop$$Lambda$15/0x0000000800fd7318.run 10",
         "slices.Sort[go.shape.int] 20"])'
done
[ "$("$ASSAY" query -u "$url" flame 'samples{service="names"}' -f folded)" = 'a.Shop$$Lambda_.run;slices.Sort[...] 20' ]
[ "$("$ASSAY" query -u "$url" flame 'samples{service="names"}' -f folded --original-names | wc -l)" = 2 ]
for function in 'slices.Sort%5B...%5D' 'slices.Sort%5Bgo.shape.int%5D'; do
    get "/api/v1/timeseries?$of_names&function=$function&count=cum&step=1h" >points.json
    json points.json 'sum(p[1] for s in d["series"] for p in s["points"]) == 20'
done
get "/api/v1/callers?$of_names&names=original&function=slices.Sort%5Bgo.shape.int%5D" >callers.json
json callers.json 'len(d["callers"]) == 2 and d["cum"] == 20'
status 400 "$url/api/v1/top?$of_names&names=nice"
stop_server

# What should never have been stored goes, and nothing else.
"$ASSAY" store delete store --query '{service="bank"}' --from 1980-01-01 --to 2100-01-01 --yes >deleted.txt
[ "$(cat deleted.txt)" = '14 windows with 410 samples were deleted.' ]
start_server deleted --data store -c keep.yaml
[ "$(get "/api/v1/label/service_name/values?$always")" = '["shop"]' ]
check_answers
stop_server
