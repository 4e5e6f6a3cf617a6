# SPDX-License-Identifier: Apache-2.0
# Spans that are deleted, damaged, or pushed by two tenants: the first go, the second are reported for
# as long as their file is there, and the third don't count as one push.
. "$ROOT/tests/server/common.bash"

for tenant in anonymous other; do
    for role in ingest read admin; do
        "$ASSAY" token create "$tenant-$role" --file tokens --tenant "$tenant" -r "$role" 2>/dev/null >"$tenant-$role.token"
    done
done
# as WHO [curl options]
as() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$1.token")" "${@:2}"; }
# requests WHO QUERY: how many there are, and how many blocks were damaged.
requests() {
    as "$1-read" -G --data-urlencode "query=$2" "$url/api/v1/requests" >answer.json
    python3 -c 'import json; d = json.load(open("answer.json")); print(d["requests"], d["damaged_blocks"])'
}
# spans FILE SERVICE FIRST COUNT: spans that begin now, with names of their own.
spans() {
    python3 - "$@" <<'END'
import json, sys, time
file, service, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
now = time.time_ns() - 10**9
spans = [{"traceId": f"{i + 1:032x}", "spanId": f"{i + 1:016x}", "name": f"{service} {i}", "kind": 2,
          "startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1000)}
         for i in range(first, first + count)]
resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
json.dump({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}, open(file, "w"))
END
}
traces() { as "$1-ingest" -H 'Content-Type: application/json' --data-binary @"$2" "$url/v1/traces" >push.json; }
confirm=(-X POST -H 'X-Assay-Confirm: delete')

start_server first --data data --tokens tokens
spans shop.json shop 0 10
spans stock.json stock 10 10
for tenant in anonymous other; do
    traces "$tenant" shop.json
    traces "$tenant" stock.json
    [ "$(requests "$tenant" '')" = '20 0' ]
done

# Deleted by label. What spans don't have selects none; a type selects profiles.
selection='from=now-1h&to=now%2B1h'
as anonymous-admin "${confirm[@]}" "$url/api/v1/admin/delete?query=%7Bhost=%22a%22%7D&$selection" >deleted.json
json deleted.json 'd["spans"] == 0'
as anonymous-admin "${confirm[@]}" "$url/api/v1/admin/delete?query=%7Bservice=%22shop%22%7D&$selection&dry_run=true" >deleted.json
json deleted.json 'd["spans"] == 10 and d["dry_run"]'
[ "$(requests anonymous '')" = '20 0' ]
as anonymous-admin "${confirm[@]}" "$url/api/v1/admin/delete?query=%7Bservice=%22shop%22%7D&$selection" >deleted.json
json deleted.json 'd["spans"] == 10 and not d["dry_run"]'
[ "$(requests anonymous '')" = '10 0' ]
[ "$(requests other '')" = '20 0' ]
as anonymous-admin "$url/api/v1/audit" | grep '10 spans' >/dev/null
# What was deleted can be pushed again, and deleted from the directory.
traces anonymous shop.json
[ "$(requests anonymous '')" = '20 0' ]
"$ASSAY" store check data >/dev/null
stop_server
"$ASSAY" store delete data --query '{service="shop"}' --from now-1h --to now+1h --dry-run >dry.txt
grep '^10 spans would be deleted' dry.txt >/dev/null
"$ASSAY" store delete data --query '{service="shop"}' --from now-1h --to now+1h --yes >deleted.txt
grep '^10 spans were deleted' deleted.txt >/dev/null

start_server second --data data --tokens tokens
[ "$(requests anonymous '')" = '10 0' ]
spans more.json more 20 5
traces other more.json
stop_server

# The head of the first block is damaged: the others stay, and everything says that some are lost.
for file in data/spans/other/*.spans; do
    printf x | dd of="$file" bs=1 seek=20 conv=notrunc 2>/dev/null
    break # the first of them
done
start_server third --data data --tokens tokens
requests other '' >after.txt
python3 -c 'import sys; n, damaged = map(int, open("after.txt").read().split()); sys.exit(not (n < 25 and damaged == 1))'
as other-read "$url/api/v1/health" >health.json
json health.json 'd["status"] == "degraded" and "/spans/other/" in d["problems"][0]'
as anonymous-read "$url/api/v1/health" >health.json
json health.json '"/spans/other/" in d["problems"][0]'
as anonymous-read "$url/metrics" | grep '^assay_spans_damaged_files 1$' >/dev/null
status=0
"$ASSAY" store check data >check.txt 2>&1 || status=$?
[ "$status" -ne 0 ]
grep '/spans/other/.*damaged' check.txt >/dev/null
[ "$(requests anonymous '')" = '10 0' ]
stop_server
# Another start, and maintenance, don't forget it.
start_server fourth --data data --tokens tokens
requests other '' >again.txt
cmp after.txt again.txt
as anonymous-read "$url/metrics" | grep '^assay_spans_damaged_files 1$' >/dev/null
stop_server

# A damaged file of marks and findings is set aside, and doesn't keep the server from starting.
printf '{"version":1,"tenants":[{"na' >data/watch.json
start_server fifth --data data --tokens tokens
[ "$(requests anonymous '')" = '10 0' ]
as anonymous-read "$url/api/v1/health" >health.json
json health.json 'any("watch.json.damaged" in text for text in d["problems"])'
as other-read "$url/api/v1/health" >health.json
json health.json 'not any("watch.json" in text for text in d["problems"])'
stop_server
cmp data/watch.json.damaged <(printf '{"version":1,"tenants":[{"na')
