# SPDX-License-Identifier: Apache-2.0
# GET /api/v1/triage, and `assay triage --service`: where the time of a service's threads went.
. "$ROOT/tests/server/common.bash"

printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n' >triage.yaml
start_server memory --in-memory -c triage.yaml
python3 "$ROOT/tests/server/window_pprof.py" one.pb wall nanoseconds 1794700000 10 \
    'main;serve=1000000000,state=running' \
    'main;take;pthread_mutex_lock;[lock queue]=6000000000,state=lock' \
    'main;pool;pthread_cond_wait=9000000000,state=lock' \
    'main;serve;recv=2000000000,state=network'
push one.pb 'service=shop' >/dev/null
window="from=1794699000&to=1794710000"
get "/api/v1/triage?query=wall%7Bservice_name%3D%22shop%22%7D&$window" >triage.json
json triage.json 'd["verdict"] == "lock" and d["ns"]["lock"] == 6000000000 and d["ns"]["idle"] == 9000000000'
json triage.json 'd["lock"] == "queue" and d["busy_ns"] == 9000000000'
json triage.json 'd["stack"][0] == "[lock queue]" and d["stack"][-1] == "main"'
get "/api/v1/triage?query=wall&$window&format=markdown" >triage.md
grep '^## Mostly waiting for locks: 66.7%' triage.md >/dev/null
status 400 "$url/api/v1/triage?query=wall&$window&format=xml"
json answer.txt '"json, text or markdown" in d["message"]'
status 404 "$url/api/v1/triage?query=wall%7Bservice_name%3D%22none%22%7D&$window"
status 400 "$url/api/v1/triage?query=wall&$window&limit=3"

# Of a Go service: what its goroutines wait for, and who held its mutexes by its own profile.
python3 "$ROOT/tests/server/window_pprof.py" threads.pb wall nanoseconds 1794700000 10 \
    'main;serve=1000000000,state=running' \
    'runtime.stopm;runtime.futexsleep=20000000000,state=lock'
python3 "$ROOT/tests/server/window_pprof.py" goroutines.pb goroutine_wall nanoseconds 1794700000 10 \
    'net/http.serverHandler.ServeHTTP;main.update;sync.(*Mutex).Lock=5000000000,state=lock' \
    'net/http.serverHandler.ServeHTTP;main.update=1000000000,state=running' \
    'runtime.gcBgMarkWorker=8000000000,state=idle'
python3 "$ROOT/tests/server/window_pprof.py" mutex.pb delay nanoseconds 1794700000 10 \
    'net/http.serverHandler.ServeHTTP;main.report;sync.(*Mutex).Unlock=4000000000'
for file in threads.pb goroutines.pb; do push "$file" 'service=cart' >/dev/null; done
push mutex.pb 'service=cart&name=mutex' >/dev/null
get "/api/v1/triage?query=wall%7Bservice_name%3D%22cart%22%7D&$window" >cart.json
json cart.json 'd["verdict"] == "lock" and d["ns"]["lock"] == 5000000000 and d["ns"]["idle"] == 28000000000'
json cart.json 'd["ns"]["computing"] == 1000000000 and d["locks"][0]["waiter"] == "main.update"'
json cart.json 'd["mutex_holders"] == [{"ns": 4000000000, "holder": "main.report"}]'

"$ASSAY" triage --service shop --server "$url" --from 1794699000 --to 1794710000 >text.txt
grep '^Mostly waiting for locks' text.txt >/dev/null
"$ASSAY" triage --service shop --server "$url" --from 1794699000 --to 1794710000 --json >cli.json
cmp cli.json triage.json
"$ASSAY" triage --service shop --server "$url" --from 1794699000 --to 1794710000 --flame shop.html >/dev/null
grep 'pthread_mutex_lock' shop.html >/dev/null
code=0
"$ASSAY" triage --service none --server "$url" --from 1794699000 --to 1794710000 2>error.txt || code=$?
[ "$code" -eq 1 ]
code=0
"$ASSAY" triage --from now-1h -a 2>error.txt || code=$?
[ "$code" -eq 2 ]
grep 'are for --service' error.txt >/dev/null
