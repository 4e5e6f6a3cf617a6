# SPDX-License-Identifier: Apache-2.0
# Late names: a profile of addresses gets its names, inlined functions and lines when its debug
# information comes, also yesterday's; a better file replaces a worse one and never the other way;
# what is wrong with a file is said, and nothing of it stays.
. "$ROOT/tests/server/common.bash"
for tool in cc objcopy strip readelf objdump; do
    type "$tool" >/dev/null || { echo "$tool is missing."; exit 77; }
done
cat >prog.c <<'C'
#include <stdio.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long spin_inner(unsigned long n)
{
    for (unsigned long i = 0; i < 1000; i++)
        sink += i * n;
    return sink;
}
__attribute__((noinline)) unsigned long busy_outer(unsigned long n)
{
    return spin_inner(n) + 1;
}
int main(int argc, char **argv)
{
    (void)argv;
    printf("%lu\n", busy_outer((unsigned long)argc) + 2);
}
C
cc -O1 -g -Wl,--build-id=sha1 -o prog prog.c
objcopy --only-keep-debug prog prog.debug
strip -o prog.stripped prog
objcopy --strip-debug prog prog.symbols
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
count=$(python3 "$ROOT/tests/server/address_pprof.py" addresses.pb prog 30)
builds=store/.symbols/builds/$(printf anonymous | od -An -tx1 | tr -d " \n")
symbol_files() { (cd store/.symbols && find . -type f | sort); }

start_server first --data store
push addresses.pb 'service=late' >/dev/null
range='from=now-2d&to=now'
functions() { get "/api/v1/top?query=cpu&$range" >top.json && json top.json '" ".join(f["function"] for f in d["functions"])'; }
[[ $(functions) == "prog+0x"* ]]
get "/api/v1/symbols/missing?$range" >missing.json
json missing.json "d['missing'][0]['build_id'] == '$id' and d['missing'][0]['value'] == 10 * $count and d['missing'][0]['service'] == 'late' and d['missing'][0]['file'] == 'prog' and d['missing'][0]['quality'] is None and d['services'][0]['named_share'] == 0"

# A stripped binary has the dynamic linker's names only, and doesn't stand in the way of better.
upload() { "$ASSAY" debuginfo upload --server "$url" "$@" | tee upload.txt; }
[[ $(upload prog.stripped) == "1 sent ("*", 0 known, 0 not better"* ]]
get /api/v1/symbols >list.json
json list.json "len(d['builds']) == 1 and d['builds'][0]['build_id'] == '$id' and d['builds'][0]['quality'] in ('starts', 'dynamic')"
[[ $(functions) == "prog+0x"* ]]
[[ $(upload prog.symbols) == "0 sent"*"1 known"* ]] # no debug information, and a binary is there
status 200 --data-binary @prog.symbols "$url/api/v1/debuginfo?build_id=$id&name=prog"
json answer.txt "d == {'build_id': '$id', 'stored': True, 'quality': 'symbols'}"
[ "$(functions)" = "busy_outer main" ]
[[ $(upload prog.debug) == "1 sent"* ]]
[ "$(functions)" = "spin_inner busy_outer main" ] || [ "$(functions)" = "busy_outer spin_inner main" ]

# Now it is as good as can be: a worse file changes nothing.
symbol_files >before.txt
sha256sum "$builds"/*/*/index >sums.txt
status 200 --data-binary @prog.stripped "$url/api/v1/debuginfo"
json answer.txt "d == {'build_id': '$id', 'stored': False, 'quality': 'inlines'}"
[[ $(upload prog.debug prog.stripped .) == "0 sent"*"0 failed."* ]]
symbol_files | diff before.txt -
sha256sum -c --quiet sums.txt

# Names, inlined functions and lines are in all that is asked and sent on.
get "/api/v1/flame?query=cpu&format=folded&$range" >folded.txt
grep '^main;busy_outer;spin_inner [0-9]*$' folded.txt >/dev/null
get "/api/v1/profile?query=cpu&format=pprof&$range" >named.pb.gz
"$ASSAY" convert named.pb.gz --to speedscope -o named.json
grep -o '"name":"spin_inner","file":"[^"]*prog.c","line":[5-7]' named.json >/dev/null
get "/api/v1/callers?query=cpu&function=spin_inner&$range" >callers.json
grep busy_outer callers.json >/dev/null
for function in spin_inner busy_outer; do
    for count in flat cum; do
        get "/api/v1/timeseries?query=cpu&function=$function&count=$count&step=1h&$range" >points.json
        get "/api/v1/top?query=cpu&$range" >top.json
        [ "$(json points.json 'sum(p[1] for s in d["series"] for p in s["points"])')" = \
            "$(json top.json "[f['$count'] for f in d['functions'] if f['function'] == '$function'][0]")" ]
    done
done
rpc SelectMergeStacktraces "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{}\",\"start\":$(($(date +%s) - 172800))000,\"end\":$(date +%s)000}" >connect.json
grep spin_inner connect.json >/dev/null
get "/api/v1/symbols/missing?$range" >missing.json
json missing.json "d['missing'] == [] and d['services'][0]['named_share'] == 1"
get /metrics >metrics.txt
grep '^assay_symbols_builds 1$' metrics.txt >/dev/null

# What is wrong with a file is said; nothing of it stays.
wrong() { # STATUS TEXT FILE [QUERY]
    status "$1" --data-binary @"$3" "$url/api/v1/debuginfo?${4:-}"
    grep -F "$2" answer.txt >/dev/null || { cat answer.txt; exit 1; }
    symbol_files | diff before.txt -
}
lie=00112233445566778899aabbccddeeff00112233
wrong 400 "The file's build ID is $id, but it was uploaded as $lie" prog "build_id=$lie"
wrong 400 'not a build ID' prog 'build_id=x'
wrong 400 'not a binary or debug file' prog.c
: >empty
wrong 400 'empty' empty
head -c 3000 prog >"./cut"
wrong 400 . cut
python3 - <<'P'
data = bytearray(open("prog.debug", "rb").read())
for i in range(len(data) // 2, len(data) - 2600, 3): data[i] ^= 0x5a
open("corrupt", "wb").write(data)
P
# A damaged file may have something left to be read, but never a better index than what there is.
curl -sS -o answer.txt --data-binary @corrupt "$url/api/v1/debuginfo"
symbol_files | diff before.txt -
sha256sum -c --quiet sums.txt
# A body that stops midway.
python3 - "$url" <<'P'
import socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
data = open("prog", "rb").read()
with socket.create_connection((host, int(port))) as s:
    s.sendall(b"POST /api/v1/debuginfo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(data) + data[:9000])
P
tries=0
while [ -n "$(ls store/.symbols/incoming)" ]; do sleep 0.05; [ $((tries += 1)) -lt 200 ]; done
symbol_files | diff before.txt -
[ "$(functions)" = "spin_inner busy_outer main" ] || [ "$(functions)" = "busy_outer spin_inner main" ]

# With equal names, a debug file with more sections is better for debuggers; one with fewer is worse,
# and so is a stripped program than one that isn't.
objcopy --remove-section=.debug_aranges prog.debug prog.thin
status 200 -X DELETE "$url/api/v1/symbols/$id"
file_of() { # KIND FILE
    cmp "$builds/${id:0:2}/${id:2}/$1" "$2"
}
send() { # FILE STORED
    status 200 --data-binary @"$1" "$url/api/v1/debuginfo"
    json answer.txt "d['stored'] is $2 and d['quality'] == '${3:-inlines}'"
}
send prog.stripped True "$(json list.json "d['builds'][0]['quality']")"
send prog.thin True
send prog.debug True
file_of debuginfo prog.debug
send prog.thin False
file_of debuginfo prog.debug
status 200 -X DELETE "$url/api/v1/symbols/$id"
send prog True
send prog.debug False
send prog.stripped False
send prog.symbols False
file_of executable prog
[ "$(curl -sS "$url/buildid/$id/executable" | cmp - prog && echo same)" = same ]

# As Pyroscope's clients send it.
service=debuginfo.v1alpha1.DebuginfoService
call() { curl -sS --fail-with-body -H 'Content-Type: application/json' -d "$2" "$url/$service/$1"; }
call ShouldInitiateUpload "{\"file\":{\"gnuBuildId\":\"$id\",\"name\":\"prog\"}}" >asked.json
json asked.json "d['shouldInitiateUpload'] is False"
call DeleteDebuginfo "{\"gnuBuildId\":\"$id\"}" >/dev/null
[[ $(functions) == "prog+0x"* ]]
call ShouldInitiateUpload "{\"file\":{\"gnu_build_id\":\"$id\"}}" >asked.json
json asked.json "d['shouldInitiateUpload'] is True"
status 404 -H 'Content-Type: application/json' -d "{\"gnuBuildId\":\"$id\"}" "$url/$service/UploadFinished"
status 200 --data-binary @prog "$url/$service/Upload/$id"
call UploadFinished "{\"gnuBuildId\":\"$id\"}" >/dev/null
call ListDebuginfo '{}' >list.json
json list.json "d['object'][0]['file']['gnuBuildId'] == '$id' and d['object'][0]['state'] == 'STATE_UPLOADED'"
printf '\n\x03\n\x01x' >message # file{gnu_build_id: "x"}
status 400 -H 'Content-Type: application/proto' --data-binary @message "$url/$service/ShouldInitiateUpload"
printf '\n*\n(%s' "$lie" >message
status 200 -H 'Content-Type: application/proto' --data-binary @message "$url/$service/ShouldInitiateUpload"
[ "$(head -c 2 answer.txt | od -An -tx1 | tr -d ' ')" = 0801 ]
status 501 -H 'Content-Type: application/json' -d '{}' "$url/$service/Other"
[ "$(functions)" = "spin_inner busy_outer main" ] || [ "$(functions)" = "busy_outer spin_inner main" ]
stop_server

# After a restart all is there. An index that can't be read is made again; limits hold.
printf 'nonsense' >"$(ls "$builds"/*/*/index)"
printf 'symbols: {file_limit: 1M, disk_limit: 1M, debuginfod_open: true}\n' >limits.yaml
start_server second --data store -c limits.yaml
tries=0
until [[ $(functions) == *spin_inner* ]]; do sleep 0.05; [ $((tries += 1)) -lt 400 ]; done
head -c 1200000 /dev/zero >zeroes
cat prog zeroes >large
status 413 --data-binary @large "$url/api/v1/debuginfo"
[ -z "$(ls store/.symbols/incoming)" ]
status 200 -X DELETE "$url/api/v1/symbols/$id"
status 404 -X DELETE "$url/api/v1/symbols/$id"
[ "$(get /api/v1/symbols | tr -d '\n')" = '{"builds":[],"bytes":0}' ]
stop_server

# This host's own files, where that is allowed; and another server's.
cp prog "$PWD/prog.here"
python3 "$ROOT/tests/server/address_pprof.py" here.pb "$PWD/prog.here" >/dev/null
printf 'symbols: {local_files: true}\n' >local.yaml
start_server local --in-memory -c local.yaml
push here.pb 'service=here' >/dev/null
tries=0
until [[ $(functions) == *spin_inner* ]]; do sleep 0.05; [ $((tries += 1)) -lt 400 ]; done
python3 "$ROOT/tests/server/address_pprof.py" lie.pb "$PWD/prog.here" 0 "$lie" >/dev/null
push lie.pb 'service=lie' >/dev/null
get '/api/v1/top?query=cpu%7Bservice_name%3D%22lie%22%7D' >lie.json
tries=0
until get /metrics >metrics.txt && grep '^assay_symbols_not_found_total [1-9]' metrics.txt >/dev/null; do
    sleep 0.05
    [ $((tries += 1)) -lt 400 ]
done
get '/api/v1/top?query=cpu%7Bservice_name%3D%22lie%22%7D' >lie.json
if grep spin_inner lie.json; then exit 1; fi
stop_server

start_server upstream --in-memory
upload prog prog.debug >/dev/null
# What dwz put into a file of its own comes before those that need it.
if type dwz >/dev/null; then
    mkdir shared
    sed s/busy_outer/busy_other/ prog.c >other.c
    cc -O1 -g -Wl,--build-id=sha1 -o shared/other other.c
    sed s/busy_outer/busy_third/ prog.c >third.c
    cc -O1 -g -Wl,--build-id=sha1 -o shared/third third.c
    (cd shared && dwz -m ashared.debug other third >/dev/null)
    if readelf -SW shared/other | grep gnu_debugaltlink >/dev/null; then
        [[ $(upload shared) == "3 sent"* ]]
        get /api/v1/symbols >list.json
        json list.json "sorted(b['quality'] for b in d['builds']) == ['inlines', 'inlines', 'inlines', 'nothing']"
    fi
fi
# A program that was split: with the package of its units it has all that others have; a package is of
# the program that its sender says, which has to be there, and whose units it has to have.
mkdir split
cp prog.c split/divided.c
(cd split && cc -O1 -gdwarf-5 -gsplit-dwarf -Wl,--build-id=sha1 -c divided.c &&
    cc -Wl,--build-id=sha1 -o divided divided.o)
python3 "$ROOT/tests/peers/make_dwp.py" split/package split/divided.dwo
rm split/divided.dwo
divided=$(readelf -n split/divided | sed -n 's/.*Build ID: //p')
quality() { get /api/v1/symbols >list.json && json list.json "[b['quality'] for b in d['builds'] if b['build_id'] == '$divided'][0]"; }
status 404 --data-binary @split/package "$url/api/v1/debuginfo?build_id=$divided"
[[ $(cat answer.txt) == *"upload the program before its package"* ]]
status 400 --data-binary @split/package "$url/api/v1/debuginfo"
[[ $(cat answer.txt) == *"specify that of its program"* ]]
[[ $(upload split/divided) == "1 sent"* ]]
[ "$(quality)" = lines ]
status 200 --data-binary @split/package "$url/api/v1/debuginfo?build_id=$id" # another program's
json answer.txt "d['stored'] is False"
mv split/package split/divided.dwp
[[ $(upload split) == "1 sent ($(stat -c %s split/divided.dwp) bytes)"* ]] # the program is known
[ "$(quality)" = inlines ]
json list.json "[b['package_bytes'] for b in d['builds'] if b['build_id'] == '$divided'][0] == $(stat -c %s split/divided.dwp)"
[[ $(upload split) == "0 sent"*"1 known"* ]]
head -c 700 split/divided.dwp >split/cut
status 400 --data-binary @split/cut "$url/api/v1/debuginfo?build_id=$divided"
# Without a package, one is made of its files, where they were built or beside it; who misses some of
# them is told.
mkdir loose
cp prog.c loose/divided.c
echo 'int other_one(int n) { return n + 1; }' >loose/other.c
(cd loose && cc -O1 -gdwarf-5 -gsplit-dwarf -c divided.c && cc -O1 -gdwarf-4 -gsplit-dwarf -c other.c &&
    cc -Wl,--build-id=sha1 -o divided divided.o other.o)
divided=$(readelf -n loose/divided | sed -n 's/.*Build ID: //p')
mv loose/divided.dwo loose/other.dwo .
[[ $(upload loose/divided 2>&1) == *"2 of its 2 split files"*"not found"* ]]
[ "$(quality)" = lines ]
mv divided.dwo other.dwo loose
[[ $(upload loose 2>&1) == "1 sent"* ]]
[ "$(quality)" = inlines ]
[[ $(upload loose) == "0 sent"*"1 known"* ]]
upstream_pid=$pid
printf 'symbols: {upstream: [%s/]}\n' "$url" >upstream.yaml
"$ASSAY" store export store exported 2>/dev/null # addresses and build IDs go along
"$ASSAY" store import imported exported 2>/dev/null
start_server downstream --data imported -c upstream.yaml
[[ $(functions) == *prog+0x* ]]
tries=0
until [[ $(functions) == *spin_inner* ]]; do sleep 0.05; [ $((tries += 1)) -lt 400 ]; done
stop_server
pid=$upstream_pid
stop_server

# ---- while an agent may still send them, answers say that names are pending ----
python3 "$ROOT/tests/server/address_pprof.py" pending.pb "$PWD/prog" 30 >/dev/null
start_server pending --in-memory
push pending.pb 'service=pending' >/dev/null
get "/api/v1/top?query=cpu&$range" >/dev/null
get "/api/v1/top?query=cpu&$range" >top.json
json top.json 'd["quality"]["symbols_requested"] == 1 and d["quality"]["unnamed_share"] == 1'
"$ASSAY" query top cpu -u "$url" --from now-2d >query.txt
grep 'names pending: symbols of 1 binaries requested, 0 uploading' query.txt
stop_server
