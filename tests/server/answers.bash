# SPDX-License-Identifier: Apache-2.0
# What a server that has man/base.pb.gz once, of service shop and host h1, has to answer.

file=$FIXTURES/man/base.pb.gz
"$ASSAY" report "$file" -n 0 -t cpu -f csv >want.csv

check_answers() {
    get "/api/v1/profile?query=cpu%7Bservice%3D%22shop%22%7D&$always" >got.pb.gz
    "$ASSAY" report got.pb.gz -n 0 -f csv >got.csv
    cmp want.csv got.csv
    for format in otlp speedscope; do
        get "/api/v1/flame?query=cpu&$always&format=$format" >got.$format
        "$ASSAY" report got.$format -n 0 -f csv | cut -d, -f1,3,5 >got.csv
        cut -d, -f1,3,5 want.csv | cmp - got.csv
    done
    get "/api/v1/flame?query=cpu&$always&format=folded" >got.folded
    [ "$(awk '{sum += $NF} END {print sum}' got.folded)" = 2130000000 ]
    [[ $(get "/api/v1/flame?query=cpu&$always&format=svg") == *"<svg"* ]]
    [[ $(get "/api/v1/flame?query=cpu&$always&format=html") == *"<html"* ]]

    get "/api/v1/top?query=cpu&$always&limit=100000" >top.json
    json top.json 'd["total"] == 2130000000 and d["unit"] == "nanoseconds"'
    json top.json 'd["quality"]["total"] == 2130000000 and d["quality"]["windows"] == 7'
    json top.json '"\n".join("%d,%d,%s" % (f["flat"], f["cum"], f["function"])
        for f in sorted(d["functions"], key=lambda f: f["function"]))' >got.txt
    python3 -c 'import csv, sys
rows = sorted(csv.DictReader(open("want.csv")), key=lambda r: r["function"])
for r in rows: print(r["flat"], r["cum"], r["function"], sep=",")' | cmp - got.txt

    get "/api/v1/flame?query=cpu&$always" >flame.json
    json flame.json 'd["flame"]["kind"] == "flame" and d["quality"]["total"] == 2130000000'

    # One label's part, and the parts add up.
    get "/api/v1/timeseries?query=cpu&$always&step=3650d&group_by=endpoint" >points.json
    json points.json 'sum(p[1] for s in d["series"] for p in s["points"]) == 2130000000'
    json points.json '[s["labels"] for s in d["series"]] == [{}, {"endpoint": "/cart"},
        {"endpoint": "/page"}, {"endpoint": "/search"}]'
    cart=$("$ASSAY" report "$file" -t cpu -f json --tag endpoint=/cart |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["shown"])')
    get "/api/v1/top?query=cpu%7Bendpoint%3D%22/cart%22%7D&$always" >top.json
    json top.json "d['total'] == $cart"
    get "/api/v1/timeseries?query=cpu&$always&step=3650d&function=main.isOdd" >points.json
    json points.json 'd["series"][0]["points"][0][1] == 110000000'
    get "/api/v1/timeseries?query=cpu&$always&step=3650d&function=main.isOdd&count=cum" >points.json
    json points.json 'd["series"][0]["points"][0][1] == 260000000'

    # A difference of the same is none.
    get "/api/v1/diff?query=cpu&$always&limit=1000000" >diff.json
    json diff.json 'len(d["functions"]) == 133 and not any(f["flat_change"] or f["cum_change"]
        for f in d["functions"])'

    [ "$(get "/api/v1/label/endpoint/values?$always")" = '["/cart","/page","/search"]' ]
    [ "$(get "/api/v1/labels?$always")" = '["endpoint","host","service_name","tenant"]' ]
    get "/api/v1/types?$always" >types.json
    json types.json '[t["id"] for t in d] == ["process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "process_cpu:samples:count:cpu:nanoseconds"]'
    get "/api/v1/series?query=cpu%7Bhost!%3D%22%22%7D&$always" >series.json
    json series.json 'len(d) == 7 and all(s["labels"]["service_name"] == "shop" and
        s["labels"]["host"] == "h1" for s in d)'
}
