# SPDX-License-Identifier: Apache-2.0
# A page of a selection whose samples say what their thread did carries that, as `assay flame`'s does:
# for the whole, for a part of the call tree, and not where nothing is known of it.
. "$ROOT/tests/server/common.bash"

start_server memory --in-memory -c keep.yaml
store() { # NAME STACKS
    printf '%b' "$2" >stacks.txt
    status 200 --data-binary @stacks.txt \
        "$url/ingest?name=$1&from=1794700000&until=1794700010&format=groups&units=samples"
}
store app%7Bstate%3Dwaiting%7D 'main;lock 3\nmain;run;disk 2\n'
store app%7Bstate%3Don-CPU%7D 'main;run 5\nmain;run;disk 1\n'
store app 'main;run 4\n'
store plain 'main;run 7\n'

# page QUERY [MORE]: the document of the page, with each state's values by function.
page() {
    get "/api/v1/flame?query=cpu%7B$1%7D&$always&format=html${2-}" >page.html
    python3 - <<'PYTHON'
import json, re
d = json.loads(re.search(r'id="flame-data">(.*?)</script>', open("page.html").read(), re.S)[1])
d["by"] = {}
for name, column in zip(d.get("states", {}).get("names", []), d.get("states", {}).get("self", [])):
    d["by"][name] = {d["strings"][d["functions"]["name"][f]]: round(v / 1e7)
        for f, v in zip(d["nodes"]["function"], column[1:]) if v}
json.dump(d, open("page.json", "w"))
PYTHON
}
page 'service%3D%22app%22'
json page.json 'd["by"] == {"on-CPU": {"run": 5, "disk": 1}, "waiting": {"lock": 3, "disk": 2}}'
json page.json 'len(d["types"]) == len(d["self"]) == 1 and sum(d["self"][0]) == 15e7'
json page.json 'd["title"] == "cpu{service=\"app\"}"'
page 'service%3D%22app%22' '&focus=main&focus=run'
json page.json 'd["by"] == {"on-CPU": {"run": 5, "disk": 1}, "waiting": {"disk": 2}}'
page 'service%3D%22app%22' '&focus=main&focus=lock'
json page.json 'd["by"] == {"waiting": {"lock": 3}}'
page 'service%3D%22app%22,state%3D%22waiting%22'
json page.json 'd["by"] == {"waiting": {"lock": 3, "disk": 2}}'
page 'service%3D%22plain%22'
json page.json '"states" not in d and sum(d["self"][0]) == 7e7'
stop_server
