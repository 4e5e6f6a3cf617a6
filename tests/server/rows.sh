# SPDX-License-Identifier: Apache-2.0
# Tables by package and by binary: a stack counts once for each row, also of a comparison and of what a
# search leaves.
. "$ROOT/tests/server/common.bash"

# Go, C++, Java; a package that calls itself through another.
cat >new.folded <<'F'
main.main;example.org/shop/cart.Add;example.org/shop/db.(*Conn).Query;example.org/shop/cart.total 10
main.main;example.org/shop/cart.Add;example.org/shop/cart.total 5
main.main;store::index::find;store::index::step 7
com.shop.web.Handler.run;com.shop.web.Router.match 3
F
cat >base.folded <<'F'
main.main;example.org/shop/cart.Add;example.org/shop/cart.total 5
F
now=$(date +%s)
start_server rows --data data -c keep.yaml
push new.folded "service=shop&from=$((now - 100))&to=$((now - 90))" >/dev/null
push base.folded "service=shop&from=$((now - 200))&to=$((now - 190))" >/dev/null
new="query=$(python3 -c 'import json,sys,urllib.request,urllib.parse
types = json.load(urllib.request.urlopen(sys.argv[1] + "/api/v1/types"))
print(urllib.parse.quote(types[0]["id"]))' "$url")&from=$((now - 150))&to=$now"

get "/api/v1/top?$new" >functions.json
json functions.json 'len(d["functions"]) == 8'
get "/api/v1/top?$new&rows=package&sort=cum" >packages.json
json packages.json '{f["function"]: [round(f[k] * 25 / d["total"], 6) for k in ("flat", "cum")] for f in d["functions"]} == {
    "main": [0, 22], "example.org/shop/cart": [15, 15], "example.org/shop/db": [0, 10],
    "store": [7, 7], "com.shop": [3, 3]} or {f["function"]: [f["flat"], f["cum"]] for f in d["functions"]}'
json packages.json '[f["cum"] for f in d["functions"]] == sorted([f["cum"] for f in d["functions"]], reverse=True)'
get "/api/v1/top?$new&rows=package&search=cart" >found.json
json found.json '[f["function"] for f in d["functions"]] == ["example.org/shop/cart"] and round(d["matched"] * 25 / d["total"], 6) == 15'
get "/api/v1/diff?$new&base_from=$((now - 300))&base_to=$((now - 150))&rows=package&normalize=none&order=desc" >changes.json
json changes.json 'd["functions"][0]["function"] == "example.org/shop/cart" and d["functions"][0]["new_flat"] == 3 * d["functions"][0]["base_flat"]'
# Text formats have no binaries.
get "/api/v1/top?$new&rows=binary" >binaries.json
json binaries.json '[(f["function"], f["flat"]) for f in d["functions"]] == [("(no binary)", d["total"])]'
push "$FIXTURES/man/cpu.pb.gz" "service=real" >/dev/null
get "/api/v1/top?query=cpu%7Bservice%3D%22real%22%7D&$always&rows=binary" >binaries.json
get "/api/v1/top?query=cpu%7Bservice%3D%22real%22%7D&$always&limit=10000" >functions.json
python3 - <<'P'
import json
functions, binaries = json.load(open("functions.json")), json.load(open("binaries.json"))
sums = {}
for row in functions["functions"]:
    name = row["binary"].rsplit("/", 1)[-1] or "(no binary)"
    sums[name] = sums.get(name, 0) + row["flat"]
assert {row["function"]: row["flat"] for row in binaries["functions"]} == sums, (sums, binaries)
assert binaries["total"] == functions["total"]
assert all(row["flat"] <= row["cum"] <= binaries["total"] for row in binaries["functions"])
P
status 400 "$url/api/v1/top?$new&rows=wrong"
stop_server
