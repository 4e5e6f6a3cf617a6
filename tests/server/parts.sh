# SPDX-License-Identifier: Apache-2.0
# Parts of an answer: one branch of the call tree in full, and source lines.
. "$ROOT/tests/server/common.bash"

start_server memory --in-memory -c keep.yaml

# ---- focus: what was folded away comes back where one looks ----
python3 -c '
for i in range(400): print(f"main;work;f{i} {i + 1}")
print("main;idle 100000")
print("other;work;f1 7")' >wide.folded
push wide.folded 'service=wide&from=1794700000' >/dev/null
wide="query=samples%7Bservice%3D%22wide%22%7D&$always"
names='[d["flame"]["strings"][i] for i in d["flame"]["functions"]["name"]]'
get "/api/v1/flame?$wide&max_nodes=20" >cut.json
json cut.json "\"(other)\" in $names and d['flame']['dropped'] > 380"
get "/api/v1/flame?$wide&focus=main&focus=work&max_nodes=1000" >part.json
json part.json "sorted(set($names)) == sorted(['main', 'work'] + [f'f{i}' for i in range(400)])"
json part.json 'd["flame"]["dropped"] == 0 and sum(d["flame"]["self"][0]) == 400 * 401 // 2'
# A question about one service takes little of the memory that there is, one about all takes more.
peak_share() {
    get /metrics | awk '/^assay_memory_budget_bytes / { all = $2 } /^assay_memory_budget_peak/ { peak = $2 }
        END { print int(100 * peak / all) }'
}
[ "$(peak_share)" -lt 12 ]
get "/api/v1/flame?query=samples&$always" >/dev/null
[ "$(peak_share)" -ge 40 ]
# The whole is what was asked about: how good it is doesn't change with where one looks.
json part.json 'd["quality"]["total"] == 100000 + 7 + 400 * 401 // 2'
get "/api/v1/flame?$wide&focus=other&format=folded" >part.folded
[[ $(cat part.folded) == "other;work;f1 7" ]]
status 404 "$url/api/v1/flame?$wide&focus=work"
[[ $(cat answer.txt) == *"begins with the frames of focus"* ]]
status 404 "$url/api/v1/flame?$wide&focus=main&focus=main"
status 404 "$url/api/v1/flame?$wide&focus="
status 400 "$url/api/v1/top?$wide&max_nodes=20"

# ---- a difference is cut in the same way ----
get "/api/v1/diff?$wide&format=flame&max_nodes=20" >diff.json
json diff.json "\"(other)\" in $names and d['flame']['dropped'] > 380"
get "/api/v1/diff?$wide&format=flame" >diff.json
json diff.json "\"(other)\" not in $names and len(set($names)) > 400"
status 400 "$url/api/v1/diff?$wide&format=flame&max_nodes=1"

# ---- lines ----
python3 - <<'END'
# main (main.c) calls sum twice, on lines 7 and 9; sum itself spends on lines 3 and 4.
from protobuf import field, varint
strings = ["", "cpu", "nanoseconds", "main", "sum", "main.c", "sum.c"]
places = [(1, 7), (1, 9), (2, 3), (2, 4)]  # function, line
stacks = [((0, 2), 10), ((0, 3), 20), ((1, 3), 30), ((1,), 5)]
out = field(1, field(1, 1) + field(2, 2))
for stack, value in stacks:
    out += field(2, field(1, b"".join(varint(p + 1) for p in reversed(stack))) +
                   field(2, varint(value)))
for i, (function, line) in enumerate(places):
    out += field(4, field(1, i + 1) + field(4, field(1, function) + field(2, line)))
out += field(5, field(1, 1) + field(2, 3) + field(4, 5))
out += field(5, field(1, 2) + field(2, 4) + field(4, 6))
out += b"".join(field(6, s) for s in strings)
open("lines.pb", "wb").write(out + field(9, 1794700000 * 10**9) + field(10, 10**9))
END
push lines.pb 'service=lines' >/dev/null
lines="query=cpu%7Bservice%3D%22lines%22%7D&$always"
rows='[(l["function"], l["file"], l["line"], l["flat"], l["cum"]) for l in d["lines"]]'
get "/api/v1/lines?$lines" >lines.json
json lines.json "$rows == [('sum', 'sum.c', 4, 50, 50), ('sum', 'sum.c', 3, 10, 10),
    ('main', 'main.c', 9, 5, 35), ('main', 'main.c', 7, 0, 30)]"
json lines.json 'd["total"] == 65 and d["line_count"] == 4 and d["unit"] == "nanoseconds"'
get "/api/v1/lines?$lines&sort=cum&limit=2" >lines.json
json lines.json "$rows == [('sum', 'sum.c', 4, 50, 50), ('main', 'main.c', 9, 5, 35)]"
get "/api/v1/lines?$lines&function=main" >lines.json
json lines.json "$rows == [('main', 'main.c', 7, 0, 30), ('main', 'main.c', 9, 5, 35)]"
status 404 "$url/api/v1/lines?$lines&function=nobody"
status 400 "$url/api/v1/lines?$lines&limit=0"
status 400 "$url/api/v1/lines?$lines&functions=main"
status 200 "$url/api/v1/lines?$wide"
json answer.txt 'all(l["line"] == 0 for l in d["lines"])'

stop_server
