# SPDX-License-Identifier: Apache-2.0
# Recordings of agents keep the time and the thread of each sample beside the store, and nothing else
# that the store hasn't.
. "$ROOT/tests/server/common.bash"

"$ASSAY" convert "$FIXTURES/firefox/processed.json" -o recording.otlp
start_server first --data data -c keep.yaml
id=r00000000ab
batch=17979cfe36a00000-00000000000000
send() { # BATCH-ID [curl options]
    local batch=$1
    shift
    status 200 "$@" -H "X-Assay-Batch-Id: $batch" -H 'Content-Type: application/x-protobuf' \
        --data-binary @recording.otlp "$url/v1development/profiles"
}
flame=/api/v1/recordings/$id/flame
status 404 "$url$flame"
send "${batch}01-$id"
send "${batch}01-$id" # once more, as after a lost answer
[ "$(ls data/recorded | wc -l)" = 1 ]
get "$flame" >one.json
json one.json '[(t["name"], t["tid"], t["samples"]) for t in d["flame"]["times"]["threads"]] ==
    [("GeckoMain", 101, 3), ("Worker", 102, 1)]'
json one.json 'd["flame"]["times"]["after"] == [0, 2000, 2000, 3000] and d["flame"]["times"]["start"] == 1700000000.001'
# As much as the store has of it, under series that don't tell threads apart.
total=$(get "/api/v1/top?query=wall%7B%7D&$always" | python3 -c 'import json, sys; print(json.load(sys.stdin)["total"])')
json one.json "sum(d['flame']['times']['value']) == $total == sum(d['flame']['self'][d['flame']['default_type']])"
[[ $(get "/api/v1/labels?$always") != *'"tid"'* ]]
[[ $(get "/api/v1/labels?$always") != *'"thread"'* ]]
# A second window adds up; other formats have threads and times, too.
send "${batch}02-$id"
get "$flame" >two.json
json two.json "sum(d['flame']['times']['value']) == 2 * $total"
get "$flame?format=firefox" >two.firefox.json
json two.firefox.json 'sorted(t["name"] for t in d["threads"]) == ["GeckoMain", "Worker"]'
[[ $(get "$flame?format=chrome-trace") == *ProfileChunk* ]]
[[ $(get "$flame?format=html") == *'"times":{'* ]]
status 400 "$url$flame?format=nonsense"
status 400 "$url$flame?unknown=1"

# What is no recording keeps nothing, whatever its id looks like.
for other in "${batch}03" "${batch}04-" "${batch}05-../x" "${batch}06-R1" "x-$id" \
    "${batch}07-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; do
    send "$other"
done
[ "$(ls data/recorded | wc -l)" = 2 ]
for wrong in ..%2f..%2fstore r R1 "$id%2f" "${id}x"; do
    status 404 "$url/api/v1/recordings/$wrong/flame"
done

# It outlives the server. A damaged file fails the answer, not the server.
stop_server
start_server second --data data -c keep.yaml
get "$flame" | cmp - two.json
file=$(ls data/recorded/* | head -n 1)
cp "$file" good
for bytes in 0 1 20 100; do
    head -c $bytes good >"$file"
    code=$(curl -sS -o answer.txt -w '%{http_code}' "$url$flame")
    [ "$code" -ge 500 ]
done
cp good "$file"
get "$flame" | cmp - two.json
# Too old.
touch -d '15 days ago' "$file"
send "${batch}09-r00000000cd"
[ ! -e "$file" ]
# What is deleted from the store is not left here.
status 200 -X POST -H 'X-Assay-Confirm: delete' "$url/api/v1/admin/delete?query=%7Bservice_name%3D~%22.%2B%22%7D&$always"
[ "$(ls data/recorded | wc -l)" = 0 ]
status 404 "$url$flame"
stop_server
