# SPDX-License-Identifier: Apache-2.0
# Source files: sent with a build, found for lines that have names from it, shown by `report`; by
# tenant, within limits, forgotten on request; and links into a repository. What is wrong is said.
. "$ROOT/tests/server/common.bash"
for tool in cc strip readelf sha256sum; do
    type "$tool" >/dev/null || { echo "$tool is missing."; exit 77; }
done
top=$PWD
mkdir -p work/src outside
cat >work/src/prog.c <<'C'
#include "../../outside/secret.h"
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long busy_outer(unsigned long n)
{
    for (unsigned long i = 0; i < 1000; i++)
        sink += i * n; /* the hot line */
    return sink + from_outside(n);
}
int main(int argc, char **argv)
{
    (void)argv;
    return busy_outer((unsigned long)argc) == 0;
}
C
printf 'static inline __attribute__((always_inline)) unsigned long from_outside(unsigned long n)\n{\n    return sink * n;\n}\n' >outside/secret.h
sed -i '1{h;d};2{G}' work/src/prog.c # the header uses what stands before it
(cd work && cc -O1 -g -Wl,--build-id=sha1 -o ../prog src/prog.c)
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
python3 "$ROOT/tests/server/address_pprof.py" addresses.pb prog 30 >/dev/null

for tenant in one two; do
    for role in ingest read admin; do
        "$ASSAY" token create "$tenant-$role" --file tokens --tenant "$tenant" -r "$role" 2>/dev/null >"$tenant-$role.token"
    done
done
cat >config.yaml <<Y
symbols: {source_file_limit: 64K, debuginfod_open: true}
source_links:
  - {services: ['sh*'], url: 'https://git.example/shop/blob/{commit}/{path}#L{line}', strip: [$PWD/work]}
  - {services: [other], url: 'https://git.example/other/{path}'}
Y
start_server first --data store --tokens tokens -c config.yaml
as() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$1.token")" "${@:2}"; }
refused() { # TOKEN STATUS WORDS curl-arguments...
    status "$2" -H "Authorization: Bearer $(cat "$1.token")" "${@:4}"
    grep -F -- "$3" answer.txt >/dev/null || { cat answer.txt; exit 1; }
}
as one-ingest --data-binary @addresses.pb "$url/api/v1/push?service=shop&commit=abc123&from=now-10s" >/dev/null
as one-ingest --data-binary @addresses.pb "$url/api/v1/push?service=shop&commit=..%2F..%2Fx&zone=b&from=now-10s" >/dev/null

# Only what is below the directories that were named is read, whatever debug information says.
upload() { "$ASSAY" debuginfo upload --sources --server "$url" --token-file "$top/one-ingest.token" "$@"; }
[[ $(cd work && upload ../prog) == *"Sources: 1 sent, 1 found locally, 1 not found below the source directories, such as $PWD/outside/secret.h."* ]]
[[ $(upload --source-root work prog) == *"Sources: 0 sent, 1 found locally, 1 not found"* ]]
ln -s "$PWD/outside/secret.h" work/src/link.h
[[ $(upload --source-map "$PWD/outside/secret.h=work/src/link.h" prog) == *"0 sent, 0 found locally, 2 not"* ]]
[[ $(upload --source-root work --source-map "$PWD/outside=outside" prog) == *"Sources: 1 sent, 2 found locally, 0 not"* ]]
if upload --source-map nonsense prog 2>said.txt; then exit 1; fi
grep 'OLD=NEW' said.txt >/dev/null
if upload --source-root missing prog 2>said.txt; then exit 1; fi
grep 'missing' said.txt >/dev/null

# Lines that got their names from the build say that there is a text, and the text is there.
path=$PWD/work/src/prog.c
lines() { as "$1" -o lines.json -G "$url/api/v1/lines" -d query=cpu -d from=now-2d -d to=now -d function=busy_outer; }
lines one-read
json lines.json "{'file': '$path', 'build_id': '$id'} in d['sources'] and len(d['sources']) <= 2"
text_of() { as "$1" -G "$url/api/v1/source" -d "build_id=$id" --data-urlencode "path=$2"; }
text_of one-read "$path" | cmp - work/src/prog.c
text_of one-read "$PWD/work/../work/./src/prog.c" | cmp - work/src/prog.c
as one-read -D head.txt -o /dev/null -G "$url/api/v1/source" -d "build_id=$id" --data-urlencode "path=$path"
grep -i '^content-type: text/plain' head.txt >/dev/null
grep -i '^x-content-type-options: nosniff' head.txt >/dev/null

# Of two builds that have the file, the one that cost more decides.
cat >two_builds.py <<'P'
import sys
from protobuf import field
texts = ["", "cpu", "nanoseconds", "shared", "/src/shared.c", sys.argv[2], sys.argv[3]]
out = field(1, field(1, 1) + field(2, 2))
for i, value in ((1, sys.argv[4]), (2, sys.argv[5])):
    out += field(2, field(1, i) + field(2, int(value)))
    out += field(3, field(1, i) + field(2, 4096 * i) + field(3, 4096 * (i + 1)) + field(6, 4 + i))
    out += field(4, field(1, i) + field(2, i) + field(3, 4096 * i + 8) + field(4, field(1, 1) + field(2, 1)))
out += field(5, field(1, 1) + field(2, 3) + field(4, 4)) + field(11, field(1, 1) + field(2, 2)) + field(12, 10)
for text in texts: out += field(6, text.encode())
open(sys.argv[1], "wb").write(out)
P
sum=$(sha256sum <work/src/prog.c | cut -d ' ' -f 1)
for build in aabbccdd ddccbbaa; do
    as one-ingest -d "$sum  /src/shared.c" "$url/api/v1/sources?build_id=$build" >/dev/null
done
for order in 'left 10 30 ddccbbaa' 'right 30 10 aabbccdd'; do
    read -r name first second wanted <<<"$order"
    python3 two_builds.py two.pb aabbccdd ddccbbaa "$first" "$second"
    as one-ingest --data-binary @two.pb "$url/api/v1/push?service=$name&from=now-10s" >/dev/null
    as one-read -o two.json -G "$url/api/v1/lines" --data-urlencode "query=cpu{service_name=\"$name\"}" -d from=now-2d -d to=now
    json two.json "d['sources'] == [{'file': '/src/shared.c', 'build_id': '$wanted'}]"
done

# Nobody else gets at it: not another tenant, also one that knows its hash, nor who has no token.
as two-ingest --data-binary @addresses.pb "$url/api/v1/push?service=shop&from=now-10s" >/dev/null
as two-ingest --data-binary @prog "$url/api/v1/debuginfo" >/dev/null # it has the names, too
lines two-read
json lines.json "d['lines'] and d['sources'] == []"
refused two-read 404 'No sources of the build' "$url/api/v1/source?build_id=$id&path=$path"
as two-ingest -o listed.json -d "$sum  $path" "$url/api/v1/sources?build_id=$id"
json listed.json "d == {'build_id': '$id', 'files': 1, 'missing': ['$sum']}"
refused two-read 404 'never uploaded' "$url/api/v1/source?build_id=$id&path=$path"
status 404 "$url/buildid/$id/source$path"
grep "require a token" answer.txt >/dev/null
status 401 "$url/api/v1/source?build_id=$id&path=$path"

# Paths are names. What is wrong with a list or a content is said, and nothing of it stays.
for hostile in /etc/passwd ../../../../etc/passwd "$PWD/tokens" store/audit.log /proc/self/environ '%00' \
    "$path/../../../../../../../../../../etc/passwd" "$PWD/work/src" /; do
    refused one-read 404 'was uploaded' -G "$url/api/v1/source" -d "build_id=$id" --data-urlencode "path=$hostile"
done
refused one-read 400 'not a build ID' "$url/api/v1/source?build_id=x&path=/a"
refused one-read 400 'build_id is missing' "$url/api/v1/source?path=/a"
refused one-read 400 'path is missing' "$url/api/v1/source?build_id=$id"
(cd store/.symbols/sources && find . -type f | sort) >before.txt
list() { refused one-ingest "$1" "$2" --data-binary "$3" "$url/api/v1/sources?build_id=${4-$id}"; }
list 400 'Line 1' 'nonsense'
list 400 'is empty' ''
list 400 'Line 2' "$sum  /a"$'\n'"$sum /b"
list 400 'leads out' "$sum  ../a.c"
list 400 'not a build ID' "$sum  /a" x
list 400 'build_id is missing' "$sum  /a" ''
content() { refused one-ingest "$1" "$2" --data-binary "$3" "$url/api/v1/sources/$4"; }
content 400 'nothing was stored' 'other' "$sum"
content 400 'not a lower-case SHA-256' 'other' "${sum^^}"
content 400 'not a lower-case SHA-256' 'other' '..%2F..%2Fincoming'
head -c 70000 /dev/zero >large
content 413 . @large "$(sha256sum <large | cut -d ' ' -f 1)"
(cd store/.symbols/sources && find . -type f | sort) | diff before.txt -
refused one-read 403 'requires ingest' -d "$sum  /a" "$url/api/v1/sources?build_id=$id"
refused one-ingest 403 'requires read' "$url/api/v1/source?build_id=$id&path=$path"

# Links: of the template that fits, with a commit that is one.
links() { as "$1" -o links.json -G "$url/api/v1/source_links" -d from=now-2d -d to=now --data-urlencode "query=$2"; }
links one-read 'cpu{service_name="shop"}'
json links.json "d == {'links': [{'service': 'shop', 'url': 'https://git.example/shop/blob/abc123/{path}#L{line}', 'commit': 'abc123', 'strip': ['$PWD/work']}]}"
links two-read cpu # no commit is known: no link
json links.json "d == {'links': []}"

# `assay report` shows the lines of a profile from the server that has them.
mv work hidden
as one-read -o named.pb.gz "$url/api/v1/profile?query=cpu&format=pprof&from=now-2d&to=now"
stop_server
sed -i 's/, debuginfod_open: true//' config.yaml
start_server second --data store --tokens tokens -c config.yaml
report() { "$ASSAY" report --lines busy_outer "$@" named.pb.gz; }
[[ $(report) == *"No source: not found locally; set --source-path"* ]]
[[ $(report --debuginfod "$url" --token-file one-read.token) == *"sink += i * n; /* the hot line */"* ]]
[[ $(ASSAY_TOKEN=$(cat one-read.token) report --debuginfod "$url/") == *"/* the hot line */"* ]]
[[ $(report --debuginfod "$url" --token-file two-read.token) == *"No source: not found locally, and $url has no such source for the build $id."* ]]
[[ $(report --debuginfod "$url") == *"No source: not found locally, and "*" answered 401"* ]]
[[ $(report --source-path hidden) == *"/* the hot line */"* ]]

# What is here may have changed since; the server has the build's own.
cp -r hidden work
sed -i 's/the hot line/changed since/' work/src/prog.c
[[ $(report) == *"/* changed since */"* ]]
[[ $(report --debuginfod "$url" --token-file one-read.token) == *"/* the hot line */"* ]]
[[ $(report --debuginfod "$url" --token-file two-read.token) == *"/* changed since */"* ]]
rm -r work

# Who deletes the build deletes its sources, of the same tenant.
mv hidden work
as two-ingest --data-binary @work/src/prog.c "$url/api/v1/sources/$sum" >/dev/null
as one-admin -X DELETE "$url/api/v1/symbols/$id" >/dev/null
refused one-read 404 'No sources of the build' "$url/api/v1/source?build_id=$id&path=$path"
text_of two-read "$path" | cmp - work/src/prog.c
as two-admin -X DELETE "$url/api/v1/symbols/$id" >/dev/null
refused two-admin 404 'No symbols of the build' -X DELETE "$url/api/v1/symbols/$id"
as one-admin "$url/api/v1/audit?limit=50" >audit.json
grep "\"symbols delete\".*$id" audit.json >/dev/null
as one-read "$url/metrics" >metrics.txt
grep '^assay_sources_files ' metrics.txt >/dev/null
stop_server

# Templates that could run something, or that go elsewhere, stop the server from starting.
printf 'source_links: [{url: "javascript:alert({path})"}, {url: "https://{commit}/{path}"}]\n' >bad.yaml
if "$ASSAY" server --listen 127.0.0.1:0 --in-memory -c bad.yaml 2>bad.txt; then exit 1; fi
grep 'bad.yaml:1: The url of a link in source_links must begin with https:// or http://' bad.txt >/dev/null
grep 'requires a host' bad.txt >/dev/null
