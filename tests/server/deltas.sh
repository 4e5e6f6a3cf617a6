# SPDX-License-Identifier: Apache-2.0
# Pushes whose values count from the start of their process: differences are stored, each once,
# whatever is repeated or refused.
. "$ROOT/tests/server/common.bash"
target=$ROOT/tests/server/scrape_target.py
for grown in 1 2 3 4 5; do python3 "$target" profile $grown >"$grown.pb.gz"; done
unit=1088 # alloc_space of one step
space=memory:alloc_space:bytes:space:bytes

total() { # SERVICE [TYPE]
    get "/api/v1/flame?query=${2:-$space}%7Bservice_name%3D%22$1%22%7D&$always" >flame.json
    json flame.json 'd["quality"]["total"]'
}
series() { # SERVICE GROWN [further label, curl options]: push.v1 as JSON
    python3 - "$@" >series.json <<'PYTHON'
import base64, json, sys
labels = [{"name": "__name__", "value": "memory"}, {"name": "service_name", "value": sys.argv[1]}]
if len(sys.argv) > 3 and sys.argv[3]:
    labels.append({"name": sys.argv[3].split("=")[0], "value": sys.argv[3].split("=")[1]})
raw = base64.b64encode(open(sys.argv[2] + ".pb.gz", "rb").read()).decode()
print(json.dumps({"series": [{"labels": labels, "samples": [{"rawProfile": raw}]}]}))
PYTHON
    curl -sS --fail-with-body -H 'Content-Type: application/json' "${@:4}" -d @series.json \
        "$url/push.v1.PusherService/Push" >/dev/null
}
form() { # NAME GROWN [sample_type_config]: /ingest as Go's clients send it
    curl -sS --fail-with-body -F "profile=@$2.pb.gz" ${3:+-F "sample_type_config=$3"} \
        "$url/ingest?name=$1"
}

start_server deltas --data store -c keep.yaml

# The first says nothing but what is in use; then differences add up.
series go 1
[ "$(total go memory:inuse_space:bytes:space:bytes)" = 570 ]
series go 2
series go 5
[ "$(total go)" = $((4 * unit)) ]
# A repeat adds nothing, and one that is older is no restart.
series go 5
series go 2
series go 5
[ "$(total go)" = $((4 * unit)) ]
[[ $(get /metrics) == *$'\nassay_delta_restarts_total 0'* ]]
[[ $(get /metrics) == *$'\nassay_delta_stale_total 1'* ]]

# By batch id: what was stored before doesn't count as the last profile.
series ids 1 '' -H 'X-Assay-Batch-Id: one'
series ids 3 '' -H 'X-Assay-Batch-Id: two'
series ids 4 '' -H 'X-Assay-Batch-Id: two'
series ids 5 '' -H 'X-Assay-Batch-Id: three'
[ "$(total ids)" = $((4 * unit)) ]

# What is refused leaves no trace: a second profile of the push is unreadable.
series whole 1
python3 - <<'PYTHON'
import base64, json
d = json.load(open("series.json"))
d["series"][0]["samples"] = [
    {"rawProfile": base64.b64encode(open("2.pb.gz", "rb").read()).decode()},
    {"rawProfile": base64.b64encode(b"no profile").decode()}]
json.dump(d, open("half.json", "w"))
PYTHON
status 415 -H 'Content-Type: application/json' -d @half.json "$url/push.v1.PusherService/Push"
series whole 4
[ "$(total whole)" = $((3 * unit)) ]

# Who says that they are differences already is believed, and so are series apart.
series given 1 __delta__=false
series given 2 __delta__=false
[ "$(total given)" = $((3 * unit)) ]
series apart 1 pod=a
series apart 5 pod=b
series apart 2 pod=a
[ "$(total apart)" = $unit ]

# /ingest: as it comes, unless the form says otherwise.
form plain 1
form plain 2
[ "$(total plain)" = $((3 * unit)) ]
config='{"alloc_space":{"units":"bytes","cumulative":true},"alloc_objects":{"cumulative":true}}'
form told 1 "$config"
form told 4 "$config"
[ "$(total told)" = $((3 * unit)) ]
stop_server
