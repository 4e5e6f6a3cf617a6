# SPDX-License-Identifier: Apache-2.0
# What Pyroscope's, Parca's and Coroot's senders put around stacks: every body of /ingest, forms with
# a configuration of sample types, series of raw profiles as protobuf and JSON.
. "$ROOT/tests/server/common.bash"

start_server memory --in-memory -c keep.yaml
when='from=1794700000&until=1794700010'
folded() { get "/api/v1/flame?query=$1%7Bservice%3D%22$2%22%7D&$always&format=folded"; }

# Folded stacks, lines, trees and tries of the same three stacks: at 100 Hz a sample is 10 ms.
printf 'main;run;step 3\nmain;run 1\nmain;rest 2\n' >groups.txt
printf 'main;run;step\nmain;run;step\nmain;run;step\nmain;run\nmain;rest\nmain;rest\n' >lines.txt
cat >trees.py <<'PYTHON'
# A node is (name, value, children): depth first, the root without a name.
from protobuf import varint
def put(node):
    name, value, children = node
    return varint(len(name)) + name.encode() + varint(value) + varint(len(children)) + b"".join(map(put, children))
tree = ("", 0, [("main", 0, [("rest", 2, []), ("run", 1, [("step", 3, [])])])])
# Pieces of "main;rest", "main;run" and "main;run;step", cut where they differ.
trie = ("", 0, [("main;r", 0, [("est", 2, []), ("un", 1, [(";step", 3, [])])])])
open("tree.bin", "wb").write(put(tree))
open("trie.bin", "wb").write(put(trie))
PYTHON
python3 trees.py
want=$'main;rest 20000000\nmain;run 10000000\nmain;run;step 30000000'
ingest() { # FILE NAME QUERY [curl options]
    local file=$1 name=$2 query=$3
    shift 3
    status 200 "$@" --data-binary @"$file" "$url/ingest?name=$name&$when&$query"
    [ ! -s answer.txt ]
}
ingest groups.txt groups.cpu 'format=groups'
ingest groups.txt nothing 'sampleRate=100'
ingest lines.txt lines 'format=lines&sampleRate=nonsense'
ingest tree.bin tree 'format=tree'
ingest trie.bin trie.cpu 'format=trie&units=samples&aggregationType=sum&spyName=scripting'
ingest tree.bin treetype '' -H 'Content-Type: binary/octet-stream+tree'
ingest trie.bin trietype '' -H 'Content-Type: binary/octet-stream+trie'
for service in groups nothing lines tree trie treetype trietype; do
    [ "$(folded cpu "$service" | sort)" = "$want" ] || { echo "$service" >&2; folded cpu "$service" >&2; exit 1; }
done
ingest trie.bin 'mem.alloc_space%7Bzone%3Da%7D' 'format=trie'
[ "$(folded alloc mem | sort)" = $'main;rest 2\nmain;run 1\nmain;run;step 3' ]
get "/api/v1/series?query=%7Bservice%3D%22trie%22%7D&$always" >series.json
json series.json 'd[0]["labels"]["pyroscope_spy"] == "scripting"'
status 415 --data-binary @trie.bin "$url/ingest?name=x&format=nothing"
head -c 12 trie.bin >cut.bin
status 400 --data-binary @cut.bin "$url/ingest?name=x&format=trie"
[[ $(cat answer.txt) == *'damaged or truncated'* ]]
status 400 --data-binary @trie.bin "$url/ingest?name=x%20y&format=trie"

# A form with what the Go client says of its types: cumulative ones are stored as differences, and
# what a type is displayed as tells what the profile is called.
python3 "$ROOT/tests/server/small_pprof.py" first.pb 1 1794700000
python3 "$ROOT/tests/server/small_pprof.py" second.pb 3 1794700010
echo '{"cpu":{"units":"samples","display-name":"alloc_things","aggregation":"sum","cumulative":true,"sampled":false}}' >config.json
for file in first second; do
    status 200 -F profile=@$file.pb -F sample_type_config=@config.json "$url/ingest?name=form&$when"
done
[ "$(folded memory:cpu:nanoseconds:cpu:nanoseconds form | sort)" = \
    $'main;handle;query 60\nmain;handle;render 40\nmain;idle 100' ]
status 400 -F profile=@first.pb -F 'sample_type_config={' "$url/ingest?name=form&$when"
status 415 -F profile=@first.pb -F prev_profile=@first.pb "$url/ingest?name=form&$when"

# Parca's WriteRaw in both forms: labels are in a message of their own, and a job is a service.
python3 - first.pb <<'PYTHON'
import base64, json, sys
from protobuf import field
raw = open(sys.argv[1], "rb").read()
pairs = {"__name__": "process_cpu", "service_name": "parca"}
labels = b"".join(field(1, field(1, k) + field(2, v)) for k, v in pairs.items())
open("parca.bin", "wb").write(field(2, field(1, labels) + field(2, field(1, raw))))
pairs = {"__name__": "process_cpu", "comm": "parcad", "job": "parcajson"}
json.dump({"normalized": True, "series": [{
    "samples": [{"rawProfile": base64.b64encode(raw).decode()}],
    "labels": {"labels": [{"name": k, "value": v} for k, v in pairs.items()]}}]}, open("parca.json", "w"))
PYTHON
small=$'main;handle;query 30\nmain;handle;render 20\nmain;idle 50'
write=/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw
status 200 -H 'Content-Type: application/proto' --data-binary @parca.bin "$url$write"
status 200 -H 'Content-Type: application/json' --data-binary @parca.json "$url/api/profiles/writeraw"
[ "$(cat answer.txt)" = '{}' ]
[ "$(folded cpu parca | sort)" = "$small" ]
[ "$(folded cpu parcajson | sort)" = "$small" ]

# Pyroscope's push: allocations count from the start unless __delta__ is false.
raw() { base64 -w0 "$1"; }
pushed() { # FILE NAME DELTA
    printf '{"series":[{"labels":[{"name":"__name__","value":"memory"},{"name":"service_name","value":"%s"}%s],"samples":[{"rawProfile":"%s"}]}]}' \
        "$2" "$3" "$(raw "$1")" >push.json
    status 200 -H 'Content-Type: application/json' -d @push.json "$url/push.v1.PusherService/Push"
}
for file in first second; do # as Go's heap profiles: another sample type of the same length
    sed 's/cpu/CPU/' $file.pb | python3 -c 'import sys
d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d.replace(b"\x32\x03CPU", b"\x32\x0balloc_space"))' >$file.alloc.pb
done
for file in first second; do
    pushed $file.alloc.pb counted ''
    pushed $file.alloc.pb delta ',{"name":"__delta__","value":"false"}'
done
sum() { folded alloc "$1" | awk '{sum += $NF} END {print sum}'; }
[ "$(sum counted)" = 200 ] # the second's less the first's
[ "$(sum delta)" = 400 ]

# Stacks of any depth are stored: too deep ones lose their outermost frames, and say so.
python3 -c 'print("\n".join(";".join(f"f{i}" for i in range(depth)) + " 1" for depth in (3, 5000)))' >deep.txt
status 200 --data-binary @deep.txt "$url/ingest?name=deep&$when&format=folded&sampleRate=100"
folded process_cpu:cpu:nanoseconds:cpu:nanoseconds deep >deep.folded
grep -qx 'f0;f1;f2 10000000' deep.folded
grep -qE '^\[truncated\];f[0-9]+;.*;f4999 10000000$' deep.folded

# Coroot's agents: labels are parameters.
status 200 --data-binary @first.pb "$url/v1/profiles?service.name=coroot&container.id=%2Fa%2Fb"
[ "$(folded cpu coroot | sort)" = "$small" ]
get "/api/v1/series?query=cpu%7Bservice%3D%22coroot%22%7D&$always" >series.json
json series.json 'd[0]["labels"]["container.id"] == "/a/b"'
stop_server
