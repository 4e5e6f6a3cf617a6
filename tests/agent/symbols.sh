# SPDX-License-Identifier: Apache-2.0
# Names for a program that only its own host has, and that was deleted while it runs: the server
# asks, of two agents one sends, once, and neither code nor data; yesterday's samples have names.
. "$ROOT/tests/agent/common.bash"
for tool in readelf objcopy strip; do
    type "$tool" >/dev/null || { echo "$tool is missing."; exit 77; }
done

mkdir place
cc -O1 -g -Wl,--build-id=sha1 -DSECRET='"the data is nobody'"'"'s business"' -include stddef.h \
    -x c -o "place/secret-$$" - <<C
#include "$PWD/busy.c"
const char *volatile secret = SECRET;
C
cp "place/secret-$$" kept
id=$(readelf -n kept | sed -n 's/.*Build ID: //p')
# Another one is stripped, and its debug file is installed beside it.
cc -O1 -g -Wl,--build-id=sha1 -o "place/bare-$$" busy.c
objcopy --only-keep-debug "place/bare-$$" "place/bare-$$.debug"
strip "place/bare-$$"
objcopy --add-gnu-debuglink="place/bare-$$.debug" "place/bare-$$"
cat >agent.yaml <<YAML
symbolize: server
budget: {symbols: 1GiB} # the C library's debug file may be installed
select: [{name: "secret-*"}, {name: "bare-*"}]
YAML
start_server server --data store
start_agent one --config agent.yaml
need_host one
start_agent two --config agent.yaml

"place/secret-$$" 600 &
agents+=($!)
"place/bare-$$" 600 &
agents+=($!)
rm "place/secret-$$"

functions() { # [SERVICE]
    curl -sS --get --data-urlencode "query=cpu{service_name=\"${1:-secret}-$$\"}" \
        "$url/api/v1/top?$always" >top.json
    json top.json '" ".join(f["function"] for f in d.get("functions", []))'
}
wait_for() { # TEXT [SERVICE]: until it is among the functions, or all patience is gone
    local tries=0
    until [[ $(functions "${2:-}") == *"$1"* ]]; do
        [ $((tries += 1)) -lt 600 ] || { cat ./*.log top.json; return 1; }
        sleep 0.3
    done
}
# At first there are addresses; asking for them is what makes the server want the file.
wait_for "secret-$$+0x"
get "/api/v1/symbols/missing?$always" >missing.json
json missing.json "any(m['build_id'] == '$id' and m['upload'] for m in d['missing'])"
wait_for busy_leaf
[[ $(functions) == *busy_caller* ]]
[[ $(functions) != *"secret-$$+0x"* ]]

wait_for busy_leaf bare

# Once, and it is known from whom. Of libc and others, too.
get /api/v1/audit >audit.txt
[ "$(grep -c "symbols upload.*$id" audit.txt)" = 1 ]
grep "symbols upload.*$id.*secret-$$.*from the agent.*done" audit.txt >/dev/null
sent=0
for name in one two; do
    curl -sS --unix-socket "$name/agent.sock" http://localhost/metrics >"$name.metrics"
    sent=$((sent + $(grep -c "Uploaded the symbols of secret-$$ that the server requested" "$name.log" || true)))
done
[ "$sent" = 1 ]
[ "$(awk '/^assay_agent_symbols_sent_total/ { n += $2 } END { print n }' ./*.metrics)" -ge 2 ]
[[ $(get /metrics) == *'assay_symbols_from_agents_total{outcome="taken"} '[1-9]* ]]
[[ $("$ASSAY" agent status --data "$PWD/one")$("$ASSAY" agent status --data "$PWD/two") == *"requested files uploaded"* ]]

# What was sent is a debug file, with lines and inlined functions and without what the program does.
get /api/v1/symbols >list.json
json list.json "[b for b in d['builds'] if b['build_id'] == '$id'][0]['quality'] in ('lines', 'inlines')"
json list.json "[b for b in d['builds'] if b['build_id'] == '$id'][0]['executable_bytes'] == 0"
get "/buildid/$id/debuginfo" >came
[[ $(readelf -SW came 2>/dev/null | grep ' \.text ') == *NOBITS* ]]
[[ $(readelf -SW came 2>/dev/null | grep ' \.rodata ') == *NOBITS* ]]
[[ $(readelf -SW came 2>/dev/null | grep ' \.debug_info ') == *PROGBITS* ]]
objcopy -O binary --only-section=.text kept text.bin
python3 - <<'PY'
came, text, kept = (open(name, "rb").read() for name in ("came", "text.bin", "kept"))
secret = b"nobody's business"
assert secret in kept and secret not in came
assert not any(text[i:i + 32] in came for i in range(0, len(text) - 32, 16))
PY
