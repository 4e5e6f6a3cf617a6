# SPDX-License-Identifier: Apache-2.0
# Every route with no token, a wrong one, one of each role, and one of another tenant. And the log: JSON
# line by line, without tokens.
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

for role in ingest read admin; do
    "$ASSAY" token create "$role" --file tokens --tenant one -r "$role" 2>/dev/null >"$role.token"
done
"$ASSAY" token create stranger --file tokens --tenant two -r read 2>/dev/null >stranger.token
start_server roles --data store --tokens tokens -c keep.yaml --access-log --log-format json

# Routes are the program's own; who may what stands here. What is in none of these lists is for
# readers: a route that needs no token, or another role, has to be added.
anybody=$(cat "$ROOT/tests/server/open_routes.txt")
senders='/api/v1/push /v1development/profiles /ingest /pyroscope/ingest /push.v1.PusherService/Push
/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw /api/profiles/writeraw /v1/profiles
/api/v1/debuginfo /api/v1/debuginfo/* /api/v1/sources /api/v1/sources/* /debuginfo.v1alpha1.DebuginfoService/*
/api/v1/agents/report /api/v1/agents/orders
/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export
/v1/traces /opentelemetry.proto.collector.trace.v1.TraceService/Export
/parca.profilestore.v1alpha1.ProfileStoreService/* /parca.profilestore.v1alpha1.ProfileStoreService/Write
/parca.profilestore.v1alpha1.ProfileStoreService/WriteArrow /parca.debuginfo.v1alpha1.DebuginfoService/Upload
/parca.debuginfo.v1alpha1.DebuginfoService/*'
admins='/api/v1/admin/delete /api/v1/admin/acknowledge /api/v1/admin/retention/resume /api/v1/audit /api/v1/control'
# One address, and who may what depends on the method.
admin_methods='POST/api/v1/recordings DELETE/api/v1/recordings/* DELETE/api/v1/symbols/* DELETE/api/v1/maps/* DELETE/api/v1/baselines/* POST/api/v1/pins DELETE/api/v1/pins/*'
sender_methods='POST/api/v1/maps POST/api/v1/baselines POST/api/v1/marks POST/api/v1/views DELETE/api/v1/views/* POST/api/v1/notes DELETE/api/v1/notes/*'
sed -n 's/^ *{"\([A-Z]*\)", "\([^"]*\)".*/\1 \2/p' "$ROOT/src/server/routes.c" >routes.txt
[ "$(wc -l <routes.txt)" -gt 30 ]
role_of() {
    set -f
    local pattern
    for pattern in $anybody; do [ "$pattern" != "$1" ] || { echo any; return; }; done
    for pattern in $senders; do [ "$pattern" != "$1" ] || { echo ingest; return; }; done
    for pattern in $admins; do [ "$pattern" != "$1" ] || { echo admin; return; }; done
    for pattern in $sender_methods; do [ "$pattern" != "$2$1" ] || { echo ingest; return; }; done
    for pattern in $admin_methods; do [ "$pattern" != "$2$1" ] || { echo admin; return; }; done
    echo read
}

ask() { # TOKEN: the status; what else it says is another test's business
    local header=()
    [ -z "$1" ] || header=(-H "Authorization: Bearer $1")
    curl -sS -o answer.txt -w '%{http_code}' -X "$method" "${header[@]}" \
        -H 'Content-Type: application/json' ${data:+-d "$data"} "$url$path"
}
failures=0
expect() { # WHO WANTED GOT; "in" is anything but 401 and 403; after many wrong tokens 401 is 429
    case $2:$3 in
    401:429) [ "$1" != nonsense ] || return 0 ;;
    in:401 | in:403) ;;
    in:* | "$3:$3") return ;;
    esac
    echo "not ok - $method $path as $1: wanted $2, got $3"
    failures=$((failures + 1))
}
while read -r method pattern; do
    role=$(role_of "$pattern" "$method")
    path=${pattern/\*/service_name}
    data=
    [ "$method" = GET ] || data='{}'
    case $role in
    any) for who in '' nonsense; do expect "${who:-nobody}" in "$(ask "$who")"; done ;;
    *)
        expect nobody 401 "$(ask '')"
        expect nonsense 401 "$(ask "assay_t0000000001_$(head -c 43 /dev/zero | tr '\0' A)")"
        for token in ingest read admin; do
            wanted=403
            [ "$token" != "$role" ] && [ "$token" != admin ] || wanted=in
            expect "$token" "$wanted" "$(ask "$(cat $token.token)")"
        done
        ;;
    esac
done <routes.txt
[ "$failures" = 0 ] || exit 1

# Another tenant sees nothing of this one, in any answer, and its files are apart.
printf 'main;secretfunction 5\n' >one.folded
as() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$1.token")" "${@:2}"; }
as ingest --data-binary @one.folded "$url/api/v1/push?service=hidden&zone=secretzone&from=now-10s" >/dev/null
for path in 'types?' 'labels?' 'label/zone/values?' 'series?' 'senders?' "flame?query=cpu&format=folded&" \
    "top?query=cpu&" "timeseries?query=cpu&" "exemplars?query=cpu&"; do
    as stranger "$url/api/v1/$path$always" >theirs.txt || true
    grep -E 'secret|hidden' theirs.txt >&2 && exit 1
done
for method in ProfileTypes LabelNames LabelValues Series SelectMergeStacktraces; do
    as stranger -H 'Content-Type: application/json' \
        -d "{\"start\":0,\"end\":9999999999999,\"name\":\"zone\",\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{}\"}" \
        "$url/querier.v1.QuerierService/$method" >theirs.txt || true
    grep -E 'secret|hidden' theirs.txt >&2 && exit 1
done
as read "$url/api/v1/top?query=cpu&$always" >ours.txt
grep secretfunction ours.txt >/dev/null
[ -d store/one ] && [ ! -e store/two ]

# The log is JSON, line by line, and has no token in it, whatever was sent.
as read "$url/api/v1/types?token=$(cat read.token)" >/dev/null || true
curl -sS -o answer.txt -H 'User-Agent: "\u0001' "$url/%22%5c%0a%ff" || true
kill -HUP "$pid"
until grep 'Reloaded' roles.log >/dev/null; do sleep 0.05; done
stop_server
jq -e -c 'select(.time and .level and .message)' roles.log >lines.txt
[ "$(wc -l <lines.txt)" = "$(wc -l <roles.log)" ]
[ "$(jq -s 'map(select(.message == "request")) | length' roles.log)" -gt 100 ]
for token in ingest read admin stranger; do
    grep -F "$(cut -d_ -f3- "$token.token")" roles.log && exit 1
done
# What keeps it from starting is JSON, too.
if "$ASSAY" server --listen 0.0.0.0:0 --in-memory --log-format json 2>refused.log; then exit 1; fi
jq -e '.level == "error" and (.message | test("insecure"))' refused.log >/dev/null
