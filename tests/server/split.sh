# SPDX-License-Identifier: Apache-2.0
# A flame graph that is split by a label: each value is a frame below the root, and sums stay.
. "$ROOT/tests/server/common.bash"

start_server split --in-memory
store() { # NAME STACKS
    printf '%b' "$2" >stacks.txt
    status 200 --data-binary @stacks.txt \
        "$url/ingest?name=$1&from=1794700000&until=1794700010&format=groups&units=samples"
}
store app%7Bthread%3Dworker%7D 'main;run 3\nmain;wait 2\n'
store app%7Bthread%3Dflusher%7D 'main;run 5\n'
store app 'main;idle 4\n'

# ask MORE: writes totals.json, the total of each path in samples.
ask() {
    get "/api/v1/flame?query=cpu%7B%7D&$always$1" >flame.json
    python3 - <<'PYTHON'
import json
d = json.load(open("flame.json"))["flame"]
names = [""] + [d["strings"][d["functions"]["name"][f]] for f in d["nodes"]["function"]]
parent = [0] + [i + 1 - up for i, up in enumerate(d["nodes"]["up"])]
total = list(d["self"][d["default_type"]])
for i in range(len(total) - 1, 0, -1):
    total[parent[i]] += total[i]
paths = [""]
for i in range(1, len(total)):
    paths.append((paths[parent[i]] + ";" if parent[i] else "") + names[i])
json.dump({p: round(v / 1e7) for p, v in zip(paths, total)}, open("totals.json", "w"))
PYTHON
}
ask ''
json totals.json 'd[""] == 14 and d["main;run"] == 8'
ask '&split=thread'
json totals.json 'd[""] == 14 and d["[thread worker];main;run"] == 3 and d["[thread flusher]"] == 5'
json totals.json 'd["[no thread]"] == 4 and d["[no thread];main;idle"] == 4 and "main" not in d'
ask '&split=thread&focus=%5Bthread+worker%5D&focus=main'
json totals.json 'd[""] == 5 and d["[thread worker];main;wait"] == 2'
# No series has such a label.
ask '&split=nothing'
json totals.json 'd["[no nothing];main;run"] == 8'
# A selection without data, and what can't be split.
status 400 "$url/api/v1/flame?query=cpu%7B%7D&$always&split=thread&format=folded"
json answer.txt '"format json" in d["message"]'
status 404 "$url/api/v1/flame?query=cpu%7B%7D&$always&split=thread&focus=nothing"
for i in $(seq 65); do store "many%7Bthread%3Dt$i%7D" 'main 1\n'; done
status 400 "$url/api/v1/flame?query=cpu%7Bservice%3D%22many%22%7D&$always&split=thread"
json answer.txt '"more than 64 values" in d["message"]'
stop_server
