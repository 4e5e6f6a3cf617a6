# SPDX-License-Identifier: Apache-2.0
# Every route as every identity: three tenants with each role, all roles in one token, revoked and cut
# tokens, tokens as other schemes and in other places. Nobody gets in who shouldn't, and no answer to
# one tenant has a word that only another tenant sent.
. "$ROOT/tests/server/common.bash"
sed -n -e 's/^ *GET_READ("\([^"]*\)".*/GET \1/p' -e 's/^ *POST_INGEST("\([^"]*\)".*/POST \1/p' \
    -e 's/^ *{"\([A-Z]*\)", "\([^"]*\)".*/\1 \2/p' "$ROOT"/src/server/*.c | sort -u >routes.txt
[ "$(wc -l <routes.txt)" -gt 50 ]
for tenant in one two three; do
    for role in ingest read admin; do
        "$ASSAY" token create "$tenant-$role" --file tokens --tenant "$tenant" -r "$role" 2>/dev/null \
            >"$tenant-$role.token"
    done
    "$ASSAY" token create "$tenant-all" --file tokens --tenant "$tenant" -r ingest,read,admin 2>/dev/null \
        >"$tenant-all.token" || rm -f "$tenant-all.token"
done
start_server identities --data store --tokens tokens -c keep.yaml
for tenant in one two; do
    printf 'main;only_%s_knows;leaf 3\n' "$tenant" >"$tenant.folded"
    push "$tenant.folded" "service=service-of-$tenant&from=now-30s&label.secretof$tenant=valueof$tenant" \
        -H "Authorization: Bearer $(cat "$tenant-ingest.token")" >/dev/null ||
        push "$tenant.folded" "service=service-of-$tenant&from=now-30s" \
            -H "Authorization: Bearer $(cat "$tenant-ingest.token")" >/dev/null
done
python3 "$ROOT/tests/long/identities.py" "$url" routes.txt
kill -0 "$pid"
stop_server
