# SPDX-License-Identifier: Apache-2.0
# Symbols, sources and name maps belong to a tenant: every route of theirs, as each role of the tenant
# that sent them, of another one that sent the same, and of one that sent nothing. A tenant lists,
# reads, replaces and deletes its own alone; what is equal is on disk once.
. "$ROOT/tests/server/common.bash"
for tool in cc objcopy strip readelf sha256sum; do
    type "$tool" >/dev/null || { echo "$tool is missing."; exit 77; }
done
cat >prog.c <<'C'
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long spin_inner(unsigned long n)
{
    for (unsigned long i = 0; i < 1000; i++)
        sink += i * n;
    return sink;
}
__attribute__((noinline)) unsigned long busy_outer(unsigned long n) { return spin_inner(n) + 1; }
int main(int argc, char **argv) { return (void)argv, busy_outer((unsigned long)argc) == 9; }
C
cc -O1 -g -Wl,--build-id=sha1 -o prog prog.c
objcopy --only-keep-debug prog prog.debug
strip -o prog.stripped prog
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
hash=$(sha256sum prog.c | cut -d' ' -f1)
python3 "$ROOT/tests/server/address_pprof.py" addresses.pb prog 30 >/dev/null
printf '{"version":3,"sources":["a.js"],"names":["secretName"],"mappings":"AAAAA"}' >a.js.map
for tenant in one two three; do
    for role in ingest read admin; do
        "$ASSAY" token create "$tenant-$role" --file tokens --tenant "$tenant" -r "$role" 2>/dev/null >"$tenant-$role.token"
    done
done
start_server tenants --data store --tokens tokens -c keep.yaml
range='from=now-2d&to=now'
service=debuginfo.v1alpha1.DebuginfoService
json_type=(-H 'Content-Type: application/json')
ask() { # WHO curl-arguments...: status on stdout, body in answer.txt, head in head.txt
    curl -sS -o answer.txt -D head.txt -w '%{http_code}' -H "Authorization: Bearer $(cat "$1.token")" "${@:2}"
}
failures=0
expect() { # WANTED WHO WORDS curl-arguments...
    local got
    got=$(ask "$2" "${@:4}")
    if [ "$got" != "$1" ] || { [ -n "$3" ] && ! grep -aF -- "$3" answer.txt >/dev/null; }; then
        echo "not ok - as $2, ${*:4}: wanted $1 $3, got $got $(head -c 200 answer.txt | tr -d '\0')"
        failures=$((failures + 1))
    fi
}
silent() { # nothing of the others' is in the answer
    if grep -aF -e "$id" -e busy_outer -e sent-prog -e prog.c answer.txt >/dev/null; then
        echo "not ok - $1 learns: $(head -c 200 answer.txt | tr -d '\0')"
        failures=$((failures + 1))
    fi
}
send_all() { # TENANT
    expect 200 "$1-ingest" '"stored":true' --data-binary @prog "$url/api/v1/debuginfo?build_id=$id&name=sent-prog"
    expect 200 "$1-ingest" "$hash" --data-binary "$hash  /src/prog.c" "$url/api/v1/sources?build_id=$id"
    expect 200 "$1-ingest" '' --data-binary @prog.c "$url/api/v1/sources/$hash"
    expect 200 "$1-ingest" '' --data-binary @a.js.map "$url/api/v1/maps?service=shop&version=1&name=a.js.map"
    expect 200 "$1-ingest" '' --data-binary @addresses.pb "$url/api/v1/baselines?name=good"
}
for tenant in one two three; do
    expect 200 "$tenant-ingest" '' --data-binary @addresses.pb "$url/api/v1/push?service=shop&from=now-10s"
done
send_all one

# Who has nothing sees nothing, whatever the role and the way of asking.
for tenant in two three; do
    for role in read admin; do
        who=$tenant-$role
        for path in "buildid/$id/executable" "buildid/$id/debuginfo" "buildid/$id/section/.debug_str" \
            "buildid/$id/source/src/prog.c" "api/v1/source?build_id=$id&path=/src/prog.c"; do
            expect 404 "$who" '' "$url/$path"
        done
        expect 200 "$who" '{"builds":[],"bytes":0}' "$url/api/v1/symbols"
        expect 200 "$who" '{"maps":[],"bytes":0}' "$url/api/v1/maps"
        for path in "api/v1/top?query=cpu&$range" "api/v1/flame?query=cpu&format=folded&$range" \
            "api/v1/profile?query=cpu&format=pprof&$range" "api/v1/lines?query=cpu&$range" metrics \
            "api/v1/exemplars?query=cpu&function=busy_outer&$range"; do
            ask "$who" "$url/$path" >/dev/null
            grep -aF busy_outer answer.txt >/dev/null && { echo "not ok - $who sees names in $path"; exit 1; }
        done
        expect 200 "$who" '"quality":null' "$url/api/v1/symbols/missing?$range"
        expect 200 "$who" '"points":' "$url/api/v1/timeseries?query=cpu&function=busy_outer&step=1h&$range"
        silent "$who"
    done
    for role in ingest admin; do
        who=$tenant-$role
        expect 404 "$who" '' "$url/api/v1/debuginfo/$id"
        expect 200 "$who" '"shouldInitiateUpload":true' "${json_type[@]}" -d "{\"file\":{\"gnuBuildId\":\"$id\"}}" "$url/$service/ShouldInitiateUpload"
        expect 404 "$who" '' "${json_type[@]}" -d "{\"gnuBuildId\":\"$id\"}" "$url/$service/UploadFinished"
        expect 200 "$who" '{"object":[]}' "${json_type[@]}" -d '{}' "$url/$service/ListDebuginfo"
        expect 200 "$who" "$hash" --data-binary "$hash  /src/prog.c" "$url/api/v1/sources?build_id=$id" # its content is missing
    done
    # Nor can they take away what isn't theirs.
    map=$(ask one-read "$url/api/v1/maps" >/dev/null && sed -n 's/.*"id":"\([^"]*\)".*/\1/p' answer.txt)
    expect 404 "$tenant-admin" '' -X DELETE "$url/api/v1/maps/$map"
    expect 200 "$tenant-admin" '' -X DELETE "$url/api/v1/symbols/$id" # its own list of sources
    expect 404 "$tenant-admin" '' -X DELETE "$url/api/v1/symbols/$id"
    expect 404 "$tenant-admin" '' "${json_type[@]}" -d "{\"gnuBuildId\":\"$id\"}" "$url/$service/DeleteDebuginfo"
    for role in ingest read; do
        expect 403 "$tenant-$role" '' -X DELETE "$url/api/v1/symbols/$id"
        expect 403 "$tenant-$role" '' -X DELETE "$url/api/v1/maps/$map"
    done
    expect 403 "$tenant-ingest" '' "${json_type[@]}" -d "{\"gnuBuildId\":\"$id\"}" "$url/$service/DeleteDebuginfo"
    expect 200 "$tenant-read" '[]' "$url/api/v1/baselines"
    expect 404 "$tenant-read" '' "$url/api/v1/baselines/good"
    silent "$tenant-read"
    expect 404 "$tenant-admin" '' -X DELETE "$url/api/v1/baselines/good"
    expect 403 "$tenant-ingest" '' -X DELETE "$url/api/v1/baselines/good"
done
# Saving a selection is reading.
expect 403 one-ingest 'needs a token that may read' -X POST "$url/api/v1/baselines?name=selected&query=cpu&$range"
expect 200 one-read good "$url/api/v1/baselines"
expect 200 one-read '' "$url/api/v1/baselines/good"
cmp answer.txt addresses.pb

# Another tenant's worse file is that tenant's; the first one's stays as it is.
expect 200 two-ingest '"stored":true' --data-binary @prog.stripped "$url/api/v1/debuginfo"
expect 200 three-ingest '' --data-binary @prog.stripped "$url/$service/Upload/$id"
of_one() {
    expect 200 one-read '' "$url/buildid/$id/executable"
    cmp answer.txt prog
    grep -i '^cache-control: private' head.txt >/dev/null
    expect 200 one-read '' "$url/buildid/$id/section/.debug_str"
    grep -i '^cache-control: private' head.txt >/dev/null
    expect 200 one-read busy_outer "$url/buildid/$id/source/src/prog.c"
    grep -i '^cache-control: private' head.txt >/dev/null
    expect 200 one-read sent-prog "$url/api/v1/symbols"
    expect 200 one-ingest '"quality":"inlines"' "$url/api/v1/debuginfo/$id"
    expect 200 one-read busy_outer "$url/api/v1/top?query=cpu&$range"
    expect 200 one-read 'a.js.map' "$url/api/v1/maps"
    expect 200 one-ingest '"shouldInitiateUpload":false' "${json_type[@]}" -d "{\"file\":{\"gnuBuildId\":\"$id\"}}" "$url/$service/ShouldInitiateUpload"
}
of_one
expect 200 two-read '' "$url/buildid/$id/executable"
cmp answer.txt prog.stripped

# Equal files are on disk once; each tenant has its own names, and loses only its own.
blocks() { du -s --block-size=1 store/.symbols/contents | cut -f1; }
before=$(blocks)
send_all two
expect 200 two-read busy_outer "$url/api/v1/top?query=cpu&$range"
[ "$(blocks)" -le "$before" ] # what was replaced is gone, and nothing was added
expect 200 one-admin '' -X DELETE "$url/api/v1/symbols/$id"
expect 404 one-read '' "$url/buildid/$id/executable"
expect 404 one-read '' "$url/buildid/$id/source/src/prog.c"
expect 200 two-read '' "$url/buildid/$id/executable"
cmp answer.txt prog
expect 200 two-read busy_outer "$url/buildid/$id/source/src/prog.c"
expect 200 two-admin '' "${json_type[@]}" -d "{\"gnuBuildId\":\"$id\"}" "$url/$service/DeleteDebuginfo"
expect 200 three-admin '' -X DELETE "$url/api/v1/symbols/$id"
[ -z "$(find store/.symbols/contents -type f)" ]
[ "$failures" = 0 ] || exit 1
stop_server

# Without a token, where that is allowed, there is the default tenant's; with one, the token's.
"$ASSAY" token create open --file tokens --tenant anonymous -r ingest 2>/dev/null >open-ingest.token
printf 'symbols: {debuginfod_open: true}\n' >>keep.yaml
start_server open --data store --tokens tokens -c keep.yaml
expect 200 one-ingest '' --data-binary @prog "$url/api/v1/debuginfo"
status 404 "$url/buildid/$id/executable"
expect 404 two-read '' "$url/buildid/$id/executable"
expect 200 one-read '' "$url/buildid/$id/executable"
expect 403 one-ingest '' "$url/buildid/$id/executable"
status 401 -H 'Authorization: Bearer nonsense' "$url/buildid/$id/executable"
expect 200 open-ingest '' --data-binary @prog.stripped "$url/api/v1/debuginfo"
status 200 "$url/buildid/$id/executable"
cmp answer.txt prog.stripped
expect 200 one-read '' "$url/buildid/$id/executable"
cmp answer.txt prog
stop_server

# Without tokens everything is the default tenant's, and anybody's.
start_server plain --data store
curl -sS -D head.txt -o answer.txt "$url/buildid/$id/executable"
cmp answer.txt prog.stripped
grep -i '^cache-control: public' head.txt >/dev/null
stop_server
[ "$failures" = 0 ]
