# SPDX-License-Identifier: Apache-2.0
# Comparisons with a server: verdicts of its API, selections and baselines as sides of a gate, and
# pushes from a pipeline. compare_fleet.py says what the truth is.
. "$ROOT/tests/server/common.bash"

start=$(($(date +%s) / 3600 * 3600 - 4 * 3600))
start_server fleet --data data -c keep.yaml
python3 "$ROOT/tests/server/compare_fleet.py" "$url" "$start"
version() { echo "cpu{service=\"shop\",version=\"$1\"}"; }
encode() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$1"; }
compare() { get "/api/v1/compare?query=$(encode "$(version "$1")")&from=$start&to=now&base_query=$(encode "$(version v1)")&$2"; }
grew='[f["function"] for f in d["functions"] if f["self"]["verdict"] == "grew"]'

# The slow function is found, by windows of two hosts; twice the traffic is twice the time of all,
# and nothing per request.
compare v2 normalize=duration >slow.json
json slow.json "$grew == ['parse'] and d['hosts'] == 2 and d['method'] == 'windows'"
json slow.json 'all(m["low"] <= m["change"] <= m["high"] for f in d["functions"] for m in (f["self"], f["total"]))'
compare v3 normalize=duration >traffic.json
json traffic.json 'd["found"] >= 22'
# More calls, or slower ones? Requests are counted here.
json traffic.json "{f['total']['cause'] for f in d['functions'] if f['total']['verdict'] == 'grew'} == {'requests'}"
json slow.json "[f['self']['cause'] for f in d['functions'] if f['self']['verdict'] == 'grew'] == ['cost per request']"
json slow.json "all('cause' not in m for f in d['functions'] for m in (f['self'], f['total']) if m['verdict'] == 'noise')"
compare v3 normalize=requests >requests.json
json requests.json 'd["found"] == 0 and d["requests"] == "cost per request" and d["new"]["requests"] == 240000'
# Without the service, the same is read some services at a time, with the same result.
hours() { # NAME SELECTOR-OF-THE-SERVICE
    get "/api/v1/compare?query=$(encode "cpu{$2version=\"v2\"}")&from=$((start + 3600))&to=$((start + 4200))&base_query=$(encode "cpu{$2version=\"v1\"}")&base_from=$start&base_to=$((start + 600))&normalize=duration" >"$1.json"
}
hours one 'service="shop",'
hours any ''
json one.json "$grew == ['parse'] and d['hosts'] == 2 and d['coarse'] == 0"
diff one.json any.json

# A server doesn't keep the rate of sampling, so numbers of samples compare by share alone.
samples=$(encode 'process_cpu:samples:count:cpu:nanoseconds{service="shop",version="v1"}')
status 400 "$url/api/v1/compare?query=$samples&from=$start&to=now&normalize=duration"
json answer.txt '"sampling rate" in d["message"]'
status 404 "$url/api/v1/compare?query=cpu%7Bservice%3D%22nobody%22%7D&from=$start"
status 400 "$url/api/v1/compare?query=cpu&normalise=total"

gate() { local code=0; "$ASSAY" gate --url "$url" --base-from "$start" --new-from "$start" "$@" >gate.txt 2>&1 || code=$?; echo "$code"; }
[ "$(gate --base-query "$(version v1)" --new-query "$(version v2)")" = 3 ]
grep -q '^failed     parse: ' gate.txt
[ "$(gate --base-query "$(version v1)" --new-query "$(version v3)")" = 0 ]
[ "$(gate --base-query "$(version v1)" --new-query 'cpu{service="nobody"}')" = 1 ]
[ "$(gate --base baseline:none --new-query "$(version v2)")" = 1 ]
"$ASSAY" gate bisect --url "$url" --base-from "$start" --new-from "$start" "query:$(version v1)" \
    "query:$(version v3)" "query:$(version v2)" >bisect.txt && exit 1
grep -q '^parse grew between query:.*v3.* and query:.*v2.*; 2 comparisons.$' bisect.txt
"$ASSAY" diff --url "$url" --base-from "$start" --new-from "$start" --base-query "$(version v1)" \
    --new-query "$(version v2)" -n 1 | grep -q ' grew .* parse$'

# What comparisons found is in the metrics.
metric() { curl -sS "$url/metrics" | sed -n "s/^$1 //p"; }
before=$(metric assay_comparisons_total) failed=$(metric assay_comparisons_failed_total)
compare v2 normalize=duration >/dev/null
status 404 "$url/api/v1/compare?query=cpu%7Bservice%3D%22nobody%22%7D&from=$start"
[ "$(metric assay_comparisons_total)" = $((before + 1)) ]
[ "$(metric assay_comparisons_failed_total)" = $((failed + 1)) ]
[ "$(metric assay_comparisons_changed_total)" -ge 3 ]
[ "$(metric assay_comparisons_found_total)" -gt 22 ]

# A baseline outlives what it was made of.
"$ASSAY" baseline save good --url "$url" --query "$(version v1)" --from "$start"
"$ASSAY" baseline save good --url "$url" --query "$(version v1)" --from "$start" 2>taken.txt && exit 1
grep -q 'There is a baseline "good" already' taken.txt
curl -sS --fail-with-body -H 'X-Assay-Confirm: delete' -d '' -o deleted.json \
    "$url/api/v1/admin/delete?query=$(encode '{service="shop",version="v1"}')&from=$start&to=now"
[ "$(gate --base baseline:good --new-query "$(version v2)")" = 3 ]
[ "$(gate --base baseline:good --new-query "$(version v3)")" = 0 ]
"$ASSAY" baseline save files --url "$url" "$FIXTURES/man/base.pb.gz" "$FIXTURES/man/new.pb.gz"
"$ASSAY" baseline list --url "$url" -f csv | cut -d, -f1,4 >list.csv
printf 'name,parts\nfiles,2\ngood,1\n' | diff - list.csv
[ "$(gate --base baseline:files --new "$FIXTURES/man/base.pb.gz" --undecided pass --max-growth 100000%)" = 0 ]
"$ASSAY" baseline show files --url "$url" | grep -q '2 files'

# Sides that can't be compared are an error with a sentence, and never a pass: as files, baselines
# and selections.
refused() { # TEXT OPTION...: exit code 1
    local text=$1 code
    shift
    code=$(gate "$@" --undecided pass)
    if [ "$code" != 1 ] || ! grep -q -- "$text" gate.txt; then
        echo "gate $*: exit code $code, not 1 with: $text" && cat gate.txt && exit 1
    fi
}
for unit in nanoseconds milliseconds; do
    python3 "$ROOT/tests/server/window_pprof.py" $unit.pb cpu $unit "$start" 10 'main;serve=9000000' 'main;idle=0'
    python3 "$ROOT/tests/server/window_pprof.py" zero.$unit.pb cpu $unit "$start" 10 'main;serve=0'
done
python3 "$ROOT/tests/server/window_pprof.py" heap.pb inuse_space bytes "$start" 10 'main;serve=1000'
push heap.pb service=shop >/dev/null
for name in milliseconds heap zero.nanoseconds; do
    "$ASSAY" baseline save $name --url "$url" $name.pb
done
new=(--new-query "$(version v2)")
refused 'has no sample type cpu/nanoseconds' --base baseline:milliseconds "${new[@]}"
refused 'has no sample type cpu/nanoseconds' --base milliseconds.pb --new nanoseconds.pb
refused 'has no sample type cpu/nanoseconds' --base baseline:heap "${new[@]}"
refused 'has no sample type' --base-query 'inuse_space{service="shop"}' "${new[@]}"
refused 'has no samples of this type' --base baseline:zero.nanoseconds "${new[@]}"
refused 'has no samples of this type' --base zero.nanoseconds.pb --new nanoseconds.pb
refused 'has no samples of this type' --base baseline:good --new zero.nanoseconds.pb
refused 'has no samples' --base baseline:good "${new[@]}" --focus '^nothing$'
refused 'No data of the type' --base baseline:good --new-query 'cpu{service="nobody"}'
refused 'No data of the type' --base baseline:good "${new[@]}" --new-from 2001-01-01 --new-to 2001-01-02
refused 'ends before it begins' --base baseline:good "${new[@]}" --new-to 2001-01-01
refused 'number of requests on the new side is unknown or zero' --base baseline:good --new nanoseconds.pb --normalize requests
refused 'in cores, but the values are in bytes' --base heap.pb --new heap.pb --budget <(echo 'budgets: [{max_cores: 1}]')
refused 'No function of either side matches' --base baseline:good "${new[@]}" --function nothing_like_this --max-growth 5%
refused 'no sample type "wall"' --base baseline:good "${new[@]}" -t wall
for name in milliseconds heap zero.nanoseconds; do "$ASSAY" baseline delete $name --url "$url"; done
"$ASSAY" baseline delete files --url "$url"
[ "$(gate --base baseline:files --new "$FIXTURES/man/base.pb.gz")" = 1 ]
: >empty.pb
"$ASSAY" baseline save empty --url "$url" empty.pb 2>/dev/null && exit 1
for name in .hidden a/b '' '..'; do
    status 400 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=$(encode "$name")"
done
status 415 --data-binary 'no profile' "$url/api/v1/baselines?name=x"
status 400 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=x&part=1&parts=2"
status 404 "$url/api/v1/baselines/good?part=1"
status 404 -X DELETE "$url/api/v1/baselines/nothing"

# A push from a pipeline is stored once, however often the step runs.
"$ASSAY" push "$FIXTURES/man/cpu.pb.gz" --url "$url" --service ci --label version=7 >push.txt
grep -Eq ': [1-9][0-9]* windows, [1-9][0-9]* samples$' push.txt
"$ASSAY" push "$FIXTURES/man/cpu.pb.gz" --url "$url" --service ci --label version=7 | grep -q ': stored before$'
"$ASSAY" push "$FIXTURES/man/cpu.pb.gz" --url "$url" --service ci --label version=8 | grep -q ' windows, '
get "/api/v1/label/version/values?query=%7Bservice%3D%22ci%22%7D&$always" >versions.json
json versions.json 'd == ["7", "8"]'
code=0
"$ASSAY" push "$FIXTURES/man/cpu.pb.gz" --url "$url" --label nothing 2>/dev/null || code=$?
[ "$code" = 2 ]
"$ASSAY" push "$FIXTURES/man/cpu.pb.gz" --url "$url" 2>/dev/null || code=$?
[ "$code" = 2 ]
"$ASSAY" push empty.pb --url "$url" --service ci 2>/dev/null && exit 1

[ "$(metric assay_baselines)" = 1 ]
[ "$(metric assay_baseline_bytes)" = "$(($(cat data/.baselines/*/good/* | wc -c)))" ]
[ "$(metric assay_baselines_refused_total)" = 0 ]
stop_server

# The quota holds, and a server without a directory says that it keeps nothing.
printf 'baselines: {count: 1}\n' >>keep.yaml
start_server fleet --data data -c keep.yaml
status 413 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=second"
json answer.txt '"the limit is 1 (baselines.count)" in d["message"]'
[ "$(metric assay_baselines_refused_total)" = 1 ]
status 200 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=good&replace=true"
stop_server

# Baselines whose last part never comes don't pile up, and a file may not take more memory than a query.
rm keep.yaml
printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n' >keep.yaml
start_server small --data data -c keep.yaml --memory-limit 64M
for i in 1 2 3 4 5 6 7; do
    status 200 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=half$i&part=0&parts=2"
done
[ "$(find data/.baselines -name '.half*' | wc -l)" = 4 ]
status 400 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=half1&part=1&parts=2"
status 200 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/baselines?name=half7&part=1&parts=2"
python3 -c 'for i in range(400000): print(f"main;part{i % 977};function_with_a_name_{i};leaf{i * 7} 1")' | gzip -1 >large.folded.gz
status 413 --data-binary @large.folded.gz "$url/api/v1/baselines?name=large"
stop_server
start_server memory --in-memory -c keep.yaml
status 501 "$url/api/v1/baselines"
stop_server
