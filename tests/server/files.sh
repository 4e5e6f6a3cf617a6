# SPDX-License-Identifier: Apache-2.0
# Profiles that come with the question: drawn, converted, compared, and never kept.
. "$ROOT/tests/server/common.bash"

start_server files --data store -c keep.yaml
man="$FIXTURES/man"
ask() {
    local path=$1
    shift
    curl -sS --fail-with-body "$@" "$url/api/v1/files/$path" >answer.txt
}

# Every format is told by its content.
ask 'flame?name=cpu' --data-binary @"$man/cpu.pb.gz"
json answer.txt 'd["format"] == "pprof" and d["flame"]["title"] == "cpu"'
json answer.txt 'd["quality"]["samples"] > 0 and d["quality"]["hosts"] is None'
json answer.txt 'len(d["flame"]["notes"]) > 0 and len(d["flame"]["types"]) > 0'
printf 'a;b 3\na;c 4\n' >stacks.folded
ask flame --data-binary @stacks.folded
json answer.txt 'd["format"] == "folded" and d["quality"]["total"] == 7'
gzip -k stacks.folded
ask flame --data-binary @stacks.folded.gz
json answer.txt 'd["quality"]["total"] == 7'
ask flame --data-binary @stacks.folded.gz -H 'Content-Type: application/gzip'
ask 'flame?max_nodes=2' --data-binary @stacks.folded
json answer.txt 'd["flame"]["dropped"] > 0'

# A part of it, to see what was folded away; and states, where samples have them.
ask 'flame?focus=a&focus=c' --data-binary @stacks.folded
json answer.txt 'd["flame"]["self"] == [[0, 0, 4]] and "states" not in d["flame"]'
status 404 --data-binary @stacks.folded "$url/api/v1/files/flame?focus=c"
ask flame --data-binary @"$FIXTURES/jfr/wall.jfr"
json answer.txt 'len(d["flame"]["states"]["names"]) == len(d["flame"]["states"]["self"]) > 1'
json answer.txt 'sum(map(sum, d["flame"]["states"]["self"])) == sum(d["flame"]["self"][d["flame"]["default_type"]])'
json answer.txt 'len(d["flame"]["types"]) == len(d["flame"]["self"])'

# Conversion is the same as the command's.
ask 'flame?format=folded' --data-binary @"$man/cpu.pb.gz"
"$ASSAY" convert "$man/cpu.pb.gz" -o wanted.folded
cmp answer.txt wanted.folded
ask 'flame?format=pprof' --data-binary @stacks.folded
cp answer.txt converted.pb.gz
[[ $("$ASSAY" report converted.pb.gz) == *c* ]]

# Two files.
ask 'diff?name=n&base_name=b' -F "base=@$man/base.pb.gz" -F "new=@$man/new.pb.gz"
json answer.txt 'd["flame"]["kind"] == "diff" and d["flame"]["title"] == "n against b"'
json answer.txt 'd["base"]["format"] == d["new"]["format"] == "pprof"'
json answer.txt 'd["flame"]["normalize"] == "duration"'
json answer.txt 'len(d["flame"]["scale"]) == len(d["flame"]["types"])'
# Which changes are certain is known by the numbers of samples.
for number in $(seq 20); do echo "main;f$number 1000"; done >steady.folded
sed 's/f7 1000/f7 1500/' steady.folded >slow.folded
ask diff -F base=@steady.folded -F new=@slow.folded
json answer.txt '[d["flame"]["strings"][d["flame"]["functions"]["name"][c["function"]]] for c in d["flame"]["changes"] if c["verdict"] == "grew"] == ["f7"]'
json answer.txt 'len(d["flame"]["changes"]) == 21'
ask 'diff?normalize=none' -F "base=@$man/base.pb.gz" -F "new=@$man/base.pb.gz"
json answer.txt 'd["flame"]["self"] == d["flame"]["base"]'
ask 'diff?focus=a&focus=b' -F base=@stacks.folded -F new=@stacks.folded
json answer.txt 'd["flame"]["base"] == d["flame"]["self"] == [[0, 0, 3]] and d["flame"]["scale"] == [1]'
ask 'diff?format=svg' -F base=@stacks.folded -F new=@stacks.folded
[[ $(cat answer.txt) == *'<svg'* ]]
ask 'diff?format=html' -F base=@stacks.folded -F new=@stacks.folded
[[ $(cat answer.txt) == *'"kind":"diff"'* ]]
status 400 -F base=@stacks.folded -F new=@stacks.folded "$url/api/v1/files/diff?format=pprof"
status 400 -F "base=@$man/base.pb.gz" "$url/api/v1/files/diff"
[[ $(cat answer.txt) == *"base and new"* ]]
status 400 -F base=@stacks.folded -F "new=@$man/heap.pb.gz" "$url/api/v1/files/diff"
[[ $(cat answer.txt) == *"samples/count"* && $(cat answer.txt) == *"no type in common"* ]]
status 400 -F base=@stacks.folded -F new=@stacks.folded "$url/api/v1/files/diff?normalize=duration"
status 400 -F base=@stacks.folded -F new=@stacks.folded "$url/api/v1/files/diff?normalize=wrong"

# A file and what is stored, either way round.
push "$man/base.pb.gz" 'service=shop&host=h1' >/dev/null
ask "diff?base_query=cpu&base_from=1980-01-01&base_to=now%2B1d" --data-binary @"$man/new.pb.gz"
json answer.txt 'd["base"]["format"] == "" and d["new"]["format"] == "pprof"'
json answer.txt 'sum(d["flame"]["base"][d["flame"]["default_type"]]) > 0'
ask "diff?query=cpu&$always" --data-binary @"$man/new.pb.gz"
json answer.txt 'd["base"]["format"] == "pprof" and d["new"]["format"] == ""'
status 400 --data-binary @"$man/new.pb.gz" "$url/api/v1/files/diff"
[[ $(cat answer.txt) == *base_query* ]]
status 400 --data-binary @"$man/new.pb.gz" "$url/api/v1/files/diff?query=cpu&base_query=cpu&$always"
status 404 --data-binary @"$man/new.pb.gz" "$url/api/v1/files/diff?base_query=lock"

# What can't be read, or is misspelt.
status 415 --data-binary @"$ROOT/LICENSE" "$url/api/v1/files/flame"
head -c 300 "$man/cpu.pb.gz" >cut.pb.gz
status 400 --data-binary @cut.pb.gz "$url/api/v1/files/flame"
status 400 --data-binary @stacks.folded "$url/api/v1/files/flame?formt=pprof"
[[ $(cat answer.txt) == *"the closest is format"* ]]
status 400 --data-binary @stacks.folded "$url/api/v1/files/flame?format=wrong"
status 405 "$url/api/v1/files/flame"
# Far more than a query may take, in few bytes.
python3 -c 'import gzip
open("bomb.gz", "wb").write(gzip.compress(b"a;b 1\n" * 10_000_000, 1))'
status 413 --data-binary @bomb.gz "$url/api/v1/files/flame"

# Nothing but the push was stored.
get "/api/v1/label/service_name/values?$always" >services.txt
json services.txt 'd == ["shop"]'
get "/api/v1/senders" >senders.txt
json senders.txt 'sum(s["pushes"] for s in d) == 1'
stop_server
