# SPDX-License-Identifier: Apache-2.0
# A store's directory from the command line: statistics, deleting (from a server and from the directory),
# export and import, and the audit log of all that.
. "$ROOT/tests/server/common.bash"

mkdir data
admin=$("$ASSAY" token create boss --file data/tokens -r admin --data data 2>/dev/null)
reader=$("$ASSAY" token create looker --file data/tokens -r read --tenant other 2>/dev/null)
printf 'main;work;hot 5\nmain;decrypt_payroll 3\n' >eve.folded
printf 'main;work;hot 5\nmain;work 3\n' >bob.folded
start_server one --data data --tokens data/tokens
as() { curl -sS --fail-with-body -H "Authorization: Bearer $admin" "$@"; }
for _ in 1 2 3; do
    as --data-binary @eve.folded "$url/api/v1/push?service_name=a&user=eve_smith&format=folded" >/dev/null
    as --data-binary @bob.folded "$url/api/v1/push?service_name=a&user=bob&format=folded" >/dev/null
done
[[ $(grep -rl decrypt_payroll data) == *raw-default* ]]

# By the API: for admins, and only when it is meant.
where='query=%7Buser%3D%22eve_smith%22%7D&from=now-1h&to=now%2B1h'
confirm='X-Assay-Confirm: delete'
status 401 -X POST -H "$confirm" "$url/api/v1/admin/delete?$where"
status 403 -X POST -H "$confirm" -H "Authorization: Bearer $reader" "$url/api/v1/admin/delete?$where"
status 403 -H "Authorization: Bearer $reader" "$url/api/v1/audit"
status 400 -X POST -H "Authorization: Bearer $admin" "$url/api/v1/admin/delete?$where"
grep -F "$confirm" answer.txt >/dev/null
status 400 -X POST -H "$confirm" -H "Authorization: Bearer $admin" "$url/api/v1/admin/delete?from=0&to=now"
printf '%s\n' "$admin" >token
delete=("$ASSAY" store delete --query '{user="eve_smith"}' --from now-1h --to now+1h)
[ "$("${delete[@]}" --url "$url" --token-file token --dry-run)" = \
    '3 windows with 6 samples would be deleted.' ]
# Nobody is there to be asked.
if "${delete[@]}" --url "$url" --token-file token 2>asked.txt; then exit 1; fi
grep -e '--yes' asked.txt >/dev/null
[[ $(grep -rl decrypt_payroll data) == *raw-default* ]]
[ "$("${delete[@]}" --url "$url" --token-file token --yes)" = \
    '3 windows with 6 samples were deleted.' ]
if grep -rl decrypt_payroll data; then exit 1; fi
if grep -rl eve_smith data/anonymous; then exit 1; fi
as "$url/api/v1/audit" >audit.json
json audit.json '[e["action"] for e in d if e["action"] != "refused"] == ["token create"] * 2 + ["start", "delete"]'
json audit.json '[e for e in d if e["action"] == "delete"][0]["actor"] == "boss"'
json audit.json '"3 windows" in [e for e in d if e["action"] == "delete"][0]["outcome"]'
# Refused logins are noted soon, without what was tried.
status 401 -H 'Authorization: Bearer assay_t0123456789_hunter2' "$url/api/v1/audit"
tries=0
until grep -F '"unauthenticated"' data/audit.log >/dev/null; do
    sleep 0.1
    [ $((tries += 1)) -lt 300 ]
done
if grep -e hunter2 -e "${admin#assay_*_}" data/audit.log; then exit 1; fi
kill -HUP "$pid"
until grep -F '"reload"' data/audit.log >/dev/null; do sleep 0.1; done
# A server has the directory: looking is fine, deleting is its business.
"$ASSAY" store stats data >/dev/null
if "${delete[@]}" data --yes 2>busy.txt; then exit 1; fi
grep 'in use by another process' busy.txt >/dev/null
stop_server
"$ASSAY" token revoke looker --file data/tokens
[[ $("$ASSAY" store audit data -n 4) == *'"action":"stop"'*'"action":"token revoke","target":"looker"'* ]]

# What is there, and carrying it elsewhere.
"$ASSAY" store stats data >stats.txt
[[ $(sed -n 1p stats.txt) == '6 samples in 3 windows of 1 series and 1 services,'* ]]
grep -E '^anonymous +default +raw +1 +' stats.txt >/dev/null
"$ASSAY" store stats data -f json >stats.json
json stats.json '[t["samples"] for t in d if t["tier"] == "raw"] == [6]'
"$ASSAY" store export data copy.export 2>said.txt
grep -F '3 windows with 6 rows in 1 batches' said.txt >/dev/null
[ ! -e copy.export.partial ]
"$ASSAY" store import copy copy.export 2>said.txt
grep -F '3 windows were stored' said.txt >/dev/null
"$ASSAY" store import copy - <copy.export 2>said.txt
grep -F '0 windows were stored; of 1 batches 1 existed already' said.txt >/dev/null
"$ASSAY" store export data - 2>/dev/null | "$ASSAY" store import piped - 2>/dev/null
for folder in copy piped; do
    [ "$("$ASSAY" store check "$folder")" = 'No damage found.' ]
    [[ $("$ASSAY" store stats "$folder" | sed -n 1p) == '6 samples in 3 windows of 1 series'* ]]
done
[[ $("$ASSAY" store audit copy) == *'"action":"import","target":"copy.export","outcome":"3 windows"'* ]]
"$ASSAY" store export data none.export --query '{user="nobody"}' 2>said.txt
grep -F '0 windows' said.txt >/dev/null

# Files that are none, or not whole.
head -c 60 copy.export >short.export
if "$ASSAY" store import bad short.export 2>said.txt; then exit 1; fi
grep 'it is truncated' said.txt >/dev/null
if "$ASSAY" store import bad stats.txt 2>said.txt; then exit 1; fi
grep 'Not an export file of assay store export' said.txt >/dev/null
[[ $("$ASSAY" store stats bad) == '0 samples in 0 windows'* ]]
if "$ASSAY" store export nowhere x.export 2>said.txt; then exit 1; fi
[ ! -e x.export ] && [ ! -e x.export.partial ]

# From a directory that nobody has.
[ "$("$ASSAY" store delete copy --query '{user="bob"}' --from now-1h --to now+1h --dry-run)" = \
    '3 windows with 6 samples would be deleted.' ]
[ "$("$ASSAY" store delete copy --query '{user="bob"}' --from now-1h --to now+1h --yes)" = \
    '3 windows with 6 samples were deleted.' ]
[[ $("$ASSAY" store stats copy) == '0 samples in 0 windows'* ]]
[[ $("$ASSAY" store audit copy -n 1) == *'"action":"delete"'*bob* ]]
if "$ASSAY" store delete nowhere --query '{}' --from 0 --to now --yes 2>/dev/null; then exit 1; fi
[ ! -e nowhere ]
if "$ASSAY" store delete copy --query '{}' 2>said.txt; then exit 1; fi
grep -F 'delete requires --query, --from and --to' said.txt >/dev/null

# A password in a URL of the wrong form isn't repeated.
for url in clickhouse:/me:secret@host/db 'clickhouse://me:secret@?x=1' clickhouse://me:secret@host/db; do
    if "$ASSAY" store check "$url" 2>said.txt; then exit 1; fi
    if grep secret said.txt; then exit 1; fi
done
