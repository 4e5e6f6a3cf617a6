# SPDX-License-Identifier: Apache-2.0
# Views, notes and pins of a running server: they outlast it, tenants see their own, and pins keep raw
# days from retention within their quota and until they expire.
. "$ROOT/tests/server/common.bash"

cat >keep.yaml <<'Y'
retention: {raw: 1d, ten_minutes: 30d, hour: 30d, day: 30d}
limits: {age: 30d}
pins: {bytes: 1MiB, count: 2}
Y
printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n' >all.yaml
now=$(date +%s)
post() { status "$1" -H 'Content-Type: application/json' -d "$3" "$url/api/v1/$2"; }
raw_days() { find data -name 'raw-*.assay' | wc -l; }

# Three days of data; retention is off.
start_server first --data data -c all.yaml
printf 'main;work 500\nmain;rest 100\n' >stacks.folded
for ago in 0 3 5; do
    push stacks.folded "service=shop&from=$((now - ago * 86400 - 60))&to=$((now - ago * 86400))" >/dev/null
done
[ "$(raw_days)" = 3 ]

post 201 views '{"name":"checkout since yesterday","address":"/compare?query=cpu%7B%7D"}'
id=$(json answer.txt 'd["id"]')
post 201 views '{"name":"checkout since yesterday","address":"/explore?query=cpu%7B%7D"}'
json answer.txt "d['id'] == '$id'"
get /api/v1/views >views.json
json views.json '[(v["name"], v["address"]) for v in d] == [("checkout since yesterday", "/explore?query=cpu%7B%7D")]'
for address in '//evil.example/' 'https://evil.example/' '/\\evil.example' '/a b' ''; do
    post 400 views "{\"name\":\"x\",\"address\":\"$address\"}"
done
post 400 views '{"address":"/"}'
post 400 views '{"name":"x","address":"/","more":1}'

post 201 notes "{\"text\":\"cache was cold\",\"service\":\"shop\",\"from\":$((now - 600)),\"to\":$((now - 300))}"
note=$(json answer.txt 'd["id"]')
post 201 notes "{\"text\":\"network work\",\"from\":$((now - 90000)),\"to\":$((now - 80000))}"
get "/api/v1/notes?from=$((now - 400))&to=$now" >notes.json
json notes.json '[n["text"] for n in d] == ["cache was cold"]'
get "/api/v1/notes?service=other" >notes.json
json notes.json '[n["text"] for n in d] == ["network work"]'
post 400 notes "{\"text\":\"\",\"from\":1,\"to\":2}"
post 400 notes "{\"text\":\"x\",\"from\":2,\"to\":1}"
post 400 notes "{\"text\":\"x\",\"from\":2}"

pinned="\"from\":$((now - 5 * 86400 - 600)),\"to\":$((now - 5 * 86400))"
post 201 pins "{\"reason\":\"incident 7\",$pinned,\"expires\":$((now + 86400))}"
pin=$(json answer.txt 'd["id"]')
post 400 pins "{\"reason\":\"no end\",$pinned}"
post 400 pins "{\"reason\":\"over\",$pinned,\"expires\":$((now - 1))}"
post 400 pins "{\"reason\":\"\",$pinned,\"expires\":$((now + 60))}"
get /api/v1/pins >pins.json
json pins.json 'd["bytes"] > 0 and d["limit_bytes"] == 1 << 30 and [p["dropped"] for p in d["pins"]] == [None]'
curl -sS "$url/api/v1/audit" >audit.txt
grep -q 'incident 7' audit.txt
stop_server

# With retention: the pinned day stays, the other old one goes.
start_server second --data data -c keep.yaml
get /api/v1/views >views.json
json views.json 'len(d) == 1'
for ((i = 0; i < 600; i++)); do
    [ "$(raw_days)" -gt 2 ] || break
    sleep 0.1
done
[ "$(raw_days)" = 2 ]
get "/api/v1/top?query=cpu&from=$((now - 5 * 86400 - 120))&to=$((now - 5 * 86400 + 120))" >top.json
json top.json 'd["total"] > 0'
# From the command line.
"$ASSAY" pin add 'from a shell' --from now-5d --to now-4d --days 2 -u "$url" >added.txt
grep -Eq '^p[0-9a-f]{10}$' added.txt
"$ASSAY" pin list -u "$url" >pins.txt
grep -Eq 'kept .*incident 7' pins.txt
grep -Eq 'kept .*from a shell' pins.txt
"$ASSAY" pin list -f json -u "$url" >pins.json
json pins.json '[p["reason"] for p in d["pins"]] == ["incident 7", "from a shell"]'
"$ASSAY" pin delete "$(cat added.txt)" -u "$url"
if "$ASSAY" pin delete "$(cat added.txt)" -u "$url" 2>wrong.txt; then exit 1; fi
grep -q 'Unknown pin' wrong.txt
if "$ASSAY" pin add x --from never --to now -u "$url" 2>wrong.txt; then exit 1; fi
grep -q never wrong.txt
# The quota in number and in bytes.
post 201 pins "{\"reason\":\"two\",$pinned,\"expires\":$((now + 86400))}"
second=$(json answer.txt 'd["id"]')
post 413 pins "{\"reason\":\"three\",$pinned,\"expires\":$((now + 86400))}"
status 200 -X DELETE "$url/api/v1/pins/$second"
status 404 -X DELETE "$url/api/v1/pins/$second"
status 404 -X DELETE "$url/api/v1/notes/$pin"
# Without the pin retention takes the day.
status 200 -X DELETE "$url/api/v1/pins/$pin"
for ((i = 0; i < 600; i++)); do
    [ "$(raw_days)" -gt 1 ] || break
    sleep 0.1
done
[ "$(raw_days)" = 1 ]
status 200 -X DELETE "$url/api/v1/notes/$note"
status 200 -X DELETE "$url/api/v1/views/$id"
get /api/v1/notes >notes.json
json notes.json 'len(d) == 1'
# A pin ends by itself.
post 201 pins "{\"reason\":\"brief\",$pinned,\"expires\":$(($(date +%s) + 2))}"
for ((i = 0; i < 600; i++)); do
    get /api/v1/pins >pins.json
    json pins.json 'len(d["pins"]) > 0' 2>/dev/null || break
    sleep 0.1
done
json pins.json 'd["pins"] == []'
stop_server

# A file that can't be read is an error, and not forgotten.
cp data/saved.json kept.json
echo '{"version":7}' >data/saved.json
if "$ASSAY" server --listen 127.0.0.1:0 --data data -c keep.yaml 2>wrong.log; then exit 1; fi
grep -q 'saved.json' wrong.log
cp kept.json data/saved.json

# Tenants see their own.
for tenant in one two; do
    "$ASSAY" token create "$tenant" --file tokens --tenant "$tenant" -r ingest,read,admin 2>/dev/null >"$tenant.token"
done
start_server third --data other --tokens tokens -c keep.yaml
as() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$1.token")" -H 'Content-Type: application/json' "${@:2}"; }
as one -o one.json -d '{"name":"mine","address":"/"}' "$url/api/v1/views"
view=$(json one.json 'd["id"]')
as one -o pin.json -d "{\"reason\":\"mine\",$pinned,\"expires\":$((now + 86400))}" "$url/api/v1/pins"
as two -o two.json "$url/api/v1/views"
json two.json 'd == []'
as two -o two.json "$url/api/v1/pins"
json two.json 'd["pins"] == []'
[ "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE -H "Authorization: Bearer $(cat two.token)" "$url/api/v1/views/$view")" = 404 ]
as one -o one.json "$url/api/v1/views"
json one.json '[v["by"] for v in d] == ["one"]'
stop_server

# A store that keeps nothing takes no pins, and lists none; and what a tenant saves is bounded.
start_server memory --in-memory -c keep.yaml
post 501 pins "{\"reason\":\"kept?\",$pinned,\"expires\":$((now + 86400))}"
get /api/v1/pins >pins.json
json pins.json 'd["pins"] == []'
python3 - "$url" <<'PYTHON'
import http.client, json, sys, urllib.parse
connection = http.client.HTTPConnection(urllib.parse.urlsplit(sys.argv[1]).netloc)
def post(name, length):
    body = json.dumps({"name": name, "address": "/" + "a" * (length - 1)})
    connection.request("POST", "/api/v1/views", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()
stored = 0
while (status := post(f"view {stored}", 8192)[0]) == 201:
    stored += 1
assert status == 413 and 250 <= stored < 256, (status, stored)
assert post("view 0", 100)[0] == 201 and post("another", 8000)[0] == 201  # what is replaced makes room
assert post("another", 8193)[0] == 400
PYTHON
stop_server
