# SPDX-License-Identifier: Apache-2.0
# Regular expressions that take very long: a query gets 400 and the reason, whichever way it comes
# in, and costs a bounded CPU time.
. "$ROOT/tests/server/common.bash"

start_server expressions --data store -c keep.yaml
cat >fill.py <<'PYTHON'
import http.client, sys, threading, time
host, port = sys.argv[1].removeprefix("http://").split(":")
def fill(part):
    connection = http.client.HTTPConnection(host, int(port))
    for i in range(part, 600, 20):
        value = "a" * 2000 + str(i)
        deadline = time.monotonic() + 60
        while True:
            path = f"/api/v1/push?service=s&lbl={value}&from=now-10s"
            connection.request("POST", path, b"main 1\n")
            answer = connection.getresponse()
            text = answer.read().decode().strip()
            if answer.status != 503 or time.monotonic() > deadline:
                break
            time.sleep(min(float(answer.getheader("Retry-After", "1")), 5))
        with lock:
            print(answer.status, text)
lock = threading.Lock()
threads = [threading.Thread(target=fill, args=(part,)) for part in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
PYTHON
python3 fill.py "$url" >filled.txt
[ "$(grep -c '^200' filled.txt)" = 600 ] || { grep -v '^200' filled.txt | head -3; exit 1; }

cpu_ticks() { sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13}'; }

# One value takes too many steps.
selector=%7Blbl%3D~%22%28%3F%3Aa%3F%29%7B1000%7Da%7B1000%7D%22%7D # {lbl=~"(?:a?){1000}a{1000}"}
before=$(cpu_ticks)
for query in 'flame?query=cpu' 'series?query=' 'label/lbl/values?query=' 'timeseries?query=cpu'; do
    status 400 "$url/api/v1/$query$selector&$always"
    json answer.txt '"takes too many steps for a value of lbl" in d["message"]'
done
status 400 -H 'Content-Type: application/json' \
    -d '{"matchers":["{lbl=~\"(?:a?){1000}a{1000}\"}"],"name":"lbl","start":1,"end":4000000000000}' \
    "$url/querier.v1.QuerierService/LabelValues"
json answer.txt '"takes too many steps" in d["message"]'
status 400 -X POST -H 'X-Assay-Confirm: delete' \
    "$url/api/v1/admin/delete?query=$selector&$always"
used=$(($(cpu_ticks) - before)) # without a limit, 8 seconds each
[ "$used" -lt $((10 * $(getconf CLK_TCK))) ] || { echo "It took $used ticks."; exit 1; }

# An ordinary expression looks at all of them.
get "/api/v1/label/lbl/values?query=%7Blbl%3D~%22a%2B%5B0-9%5D%2A7%22%7D&$always" >values.json
json values.json 'len(d) == 60'
stop_server
