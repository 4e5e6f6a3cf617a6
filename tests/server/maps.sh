# SPDX-License-Identifier: Apache-2.0
# Source maps and mapping files for a service and version: profiles that are stored get their names,
# in all that can be asked; other services, versions and tenants don't; the newest counts; what is
# wrong is refused; the list, removal, audit, restart.
. "$ROOT/tests/server/common.bash"

# Two minified functions that are both called `t`: where they start tells them apart. The one of
# `function t(e)` starts at column 10 and is renderCart of cart.ts:3; that of `t=e=>` starts at 40 and
# is priceOf of price.ts:7, whose parameter is `item`.
cat >app.js.map <<'J'
{"version":3,"file":"app.js","sources":["src/cart.ts","src/price.ts"],"names":["renderCart","priceOf","item"],
"mappings":"SAEAA,EAAAE,2BCIAD,EAAAC"}
J
# A profile as V8 has it: lines and columns count from 0 and are where functions start.
profile() { # NAME MICROSECONDS URL
    cat >"$1" <<J
{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2]},
{"id":2,"callFrame":{"functionName":"t","url":"$3","lineNumber":0,"columnNumber":10},"children":[3,4]},
{"id":3,"callFrame":{"functionName":"t","url":"$3","lineNumber":0,"columnNumber":40}},
{"id":4,"callFrame":{"functionName":"","url":"$3","lineNumber":0,"columnNumber":44}}],
"startTime":0,"endTime":$(($2 + 1000)),"samples":[3,4],"timeDeltas":[0,$2]}
J
}
profile one.cpuprofile 5000 file:///srv/dist/app.js
start_server maps --data store -c keep.yaml
range='from=now-2h&to=now%2B1h'
wall='wall:wall:nanoseconds::'
for labels in 'service=shop&version=1' 'service=shop&version=2' 'service=shop' 'service=till&version=1'; do
    push one.cpuprofile "$labels&from=now-10s" >/dev/null
done
folded() { # QUERY
    curl -sS --fail-with-body -G "$url/api/v1/flame?$range&format=folded" --data-urlencode "query=$wall$1" | sort
}
upload() { "$ASSAY" debuginfo upload --server "$url" "$@"; }
folded '{service_name="shop",version="1"}' >before.txt
grep -F 't;t ' before.txt >/dev/null

# Before and after: yesterday's profile gets names, and only that version of that service.
mkdir dist
cp app.js.map dist/app.js.map
echo '{}' >dist/style.css.map
[ "$(upload --service shop --version 1 dist)" = "1 sent ($(wc -c <app.js.map) bytes), 0 failed." ]
folded '{service_name="shop",version="1"}' >after.txt
cat after.txt
grep '^renderCart;priceOf [0-9]*$' after.txt >/dev/null
grep '^renderCart;(anonymous) price.ts:7 [0-9]*$' after.txt >/dev/null
[ "$(wc -l <after.txt)" = 2 ]
for other in '{service_name="shop",version="2"}' '{service_name="shop",version=""}' '{service_name="till"}'; do
    folded "$other" | cut -d ' ' -f 1 >other.txt
    cut -d ' ' -f 1 before.txt | diff - other.txt
done
# Of all together every part is there once: 4 pushes.
folded '{}' >all.txt
python3 - <<'P'
def read(name):
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in open(name)}
before, after, all_ = read("before.txt"), read("after.txt"), read("all.txt")
wanted = {stack: 3 * value for stack, value in before.items()}
wanted.update(after)
assert all_ == wanted, (all_, wanted)
P
ask() { curl -sS --fail-with-body -G "$url/api/v1/$1" -d "$range" --data-urlencode "query=$wall$2" "${@:3}"; }
ask top '{}' >top.json
json top.json "d['quality']['windows'] == 4 and d['quality']['series'] == 4"
json top.json "{'renderCart', 'priceOf', 't'} <= {f['function'] for f in d['functions']}"
mine='{service_name="shop",version="1"}'
ask callers "$mine" -d function=priceOf >callers.json
grep renderCart callers.json >/dev/null
ask lines "$mine" -d function=priceOf >lines.json
grep 'src/price.ts' lines.json >/dev/null
ask diff "$mine" --data-urlencode "base_query=$wall{service_name=\"till\"}" >diff.json
json diff.json "{'priceOf', 't'} <= {f['function'] for f in d['functions']}"
# Values over time: by the name in the source, and no longer by the other, each where it holds.
sum='sum(p[1] for s in d["series"] for p in s["points"])'
ask timeseries "$mine" -d function=priceOf >named.json
ask timeseries "$mine" -d function=t >raw.json
json named.json "$sum == 5000000"
json raw.json "$sum == 0"
ask timeseries '{}' -d function=t -d group_by=version -d count=cum >groups.json
json groups.json "{s['labels'].get('version', '-'): sum(p[1] for p in s['points']) for s in d['series']} == {'1': 6000000, '2': 6000000, '-': 6000000}"
ask timeseries '{}' -d function=renderCart -d group_by=service_name -d count=cum >groups.json
json groups.json "{s['labels']['service_name']: sum(p[1] for p in s['points']) for s in d['series']} == {'shop': 6000000, 'till': 0}"
ask profile "$mine" -d format=pprof >named.pb.gz
"$ASSAY" report --format csv named.pb.gz >report.csv
grep '^priceOf,\|,priceOf,' report.csv >/dev/null
if grep -w t report.csv; then exit 1; fi
rpc SelectMergeStacktraces "{\"profileTypeID\":\"$wall\",\"labelSelector\":\"{version=\\\"1\\\"}\",\"start\":$(($(date +%s) - 7200))000,\"end\":$(($(date +%s) + 60))000}" >connect.json
grep priceOf connect.json >/dev/null

# A JVM: names without lines, and with a line that was inlined; as an export from elsewhere.
cat >mapping.txt <<'M'
com.example.Cart -> a.b:
# {"id":"sourceFile","fileName":"Cart.kt"}
    1:1:int com.example.Price.round(int):88:88 -> a
    1:1:void checkout():20 -> a
    2:2:void clear():30 -> a
M
cat >jvm.json <<'J'
{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"java.lang.Thread.run"},
{"name":"a.b.a","line":1},{"name":"a.b.a"},{"name":"a.b.z"}]},"profiles":[{"type":"sampled","name":"p","unit":"nanoseconds",
"startValue":0,"endValue":12,"samples":[[0,1],[0,2],[0,3]],"weights":[5,4,3]}]}
J
push jvm.json 'service=phone&version=9&from=now-10s' >/dev/null
[[ $(upload --service phone --version 9 mapping.txt) == '1 sent'* ]]
get /api/v1/types >types.json
type=$(json types.json "[t['id'] for t in d if 'wall' not in t['id']][0]")
curl -sS --fail-with-body -G "$url/api/v1/flame?$range&format=folded" --data-urlencode "query=$type{service_name=\"phone\"}" | sort >jvm.txt
diff - jvm.txt <<'T'
java.lang.Thread.run;com.example.Cart.checkout;com.example.Price.round 5
java.lang.Thread.run;com.example.Cart.checkout|clear 4
java.lang.Thread.run;com.example.Cart.z 3
T

# The newest counts; a map that says no more of these places leaves them alone.
sed s/renderCart/drawBasket/ app.js.map >app.json
[[ $(upload --service shop --version 1 app.json) == '1 sent'* ]] # called app.js by its own field
folded "$mine" >after.txt
grep '^drawBasket;priceOf ' after.txt >/dev/null
get /api/v1/maps >maps.json
json maps.json "[(m['service'], m['version'], m['name'], m['kind']) for m in d['maps']] == [('phone', '9', '', 'jvm'), ('shop', '1', 'app.js', 'javascript')]"
get '/api/v1/maps?service=shop&version=1&name=app.js' >some.json
json some.json "[m['service'] for m in d['maps']] == ['shop']"
get '/api/v1/maps?service=shop&version=' >some.json
json some.json "d == {'maps': [], 'bytes': 0}"
get /metrics >metrics.txt
grep '^assay_maps 2$' metrics.txt >/dev/null

# What is wrong is said, and changes nothing.
wrong() { # STATUS TEXT BODY QUERY
    status "$1" --data-binary "$3" "$url/api/v1/maps?$4"
    grep -F "$2" answer.txt >/dev/null || { cat answer.txt; exit 1; }
}
wrong 400 'requires the parameter service' '{}' 'version=1'
wrong 400 'has no parameter' '{}' 'service=shop&versoin=1'
wrong 400 'no mappings' '{}' 'service=shop&version=1&name=app.js'
wrong 400 'not in a valid segment' '{"version":3,"sources":[],"mappings":"AAAA"}' 'service=shop&version=1&name=app.js'
wrong 400 'Not a source map or a mapping file' 'nonsense' 'service=shop&version=1'
wrong 400 'empty' '' 'service=shop&version=1'
if upload --service shop --version 1 one.cpuprofile 2>errors.txt >sent.txt; then exit 1; fi
grep 'no mappings' errors.txt >/dev/null
[ "$(cat sent.txt)" = '0 sent (0 bytes), 1 failed.' ]
mkdir empty
if upload --service shop --version 1 empty 2>errors.txt; then exit 1; fi
grep 'No source map' errors.txt >/dev/null
for options in '--service shop' '--version 1'; do
    # shellcheck disable=SC2086 # two words
    if upload $options dist 2>errors.txt; then exit 1; fi
    grep -e '--service' errors.txt >/dev/null
done
folded "$mine" | diff after.txt -
[ -z "$(ls store/.symbols/incoming)" ]
# Compressed, as build pipelines have them.
gzip -k app.js.map
status 200 --data-binary @app.js.map.gz "$url/api/v1/maps?service=shop&version=2&name=app.js"
folded '{service_name="shop",version="2"}' >two.txt
grep '^renderCart;priceOf ' two.txt >/dev/null
stop_server

# All is there after a restart, but for what was damaged; and rollups have names too.
start_server again --data store -c keep.yaml
folded "$mine" | diff after.txt -
get /api/v1/maps >maps.json
id=$(json maps.json "[m['id'] for m in d['maps'] if m['version'] == '2'][0]")
status 200 -X DELETE "$url/api/v1/maps/$id"
status 404 -X DELETE "$url/api/v1/maps/$id"
folded '{service_name="shop",version="2"}' | cut -d ' ' -f 1 >other.txt
cut -d ' ' -f 1 before.txt | diff - other.txt
get '/api/v1/audit?limit=100' >audit.json
json audit.json "{('map upload', 'done'), ('map delete', 'done')} <= {(e['action'], e['outcome']) for e in d}"
json audit.json "'service shop, version 1, app.js' in [e['target'] for e in d]"
stop_server
id=$(json maps.json "[m['id'] for m in d['maps'] if m['version'] == '1'][0]")
printf 'x' | dd of="store/.symbols/maps/$id" bs=1 seek=200 conv=notrunc 2>/dev/null
start_server damaged --data store -c keep.yaml
folded "$mine" | diff before.txt -
[ ! -e "store/.symbols/maps/$id" ]
stop_server
