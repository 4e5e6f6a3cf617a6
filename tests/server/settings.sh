# SPDX-License-Identifier: Apache-2.0
# Settings: the example is good, every option is a key, what is wrong is said with its line; and
# what limits do to senders: rates, depth.
. "$ROOT/tests/server/common.bash"

"$ASSAY" server --check-config -c "$ROOT/docs/server.example.yaml"

# Every option but those about the file itself is a key of the example.
"$ASSAY" server --help >help.txt
while read -r option; do
    case $option in
    config | check-config | help) continue ;;
    tls-cert) key=certificate ;;
    tls-key) key=key ;;
    *) key=${option//-/_} ;;
    esac
    grep -E "^ *$key:" "$ROOT/docs/server.example.yaml" >/dev/null || {
        echo "--$option has no key $key in docs/server.example.yaml."
        exit 1
    }
done < <(sed -n 's/^ *\(-., \)\?--\([a-z-]*\).*/\2/p' help.txt)

wrong() { # SETTINGS WORDS
    printf '%s\n' "$1" >wrong.yaml
    if "$ASSAY" server --check-config -c wrong.yaml 2>wrong.log; then
        echo "This is taken: $1"
        exit 1
    fi
    [[ $(cat wrong.log) == *wrong.yaml:1:*$2* ]] || { cat wrong.log; exit 1; }
}
wrong 'memory_limits: 1GiB' memory_limit
wrong 'limits: {dept: 3}' depth
wrong 'limits: {clock_skew: soon}' clock_skew
wrong 'rate_limits: {byte: 3}' bytes
wrong 'retention: [{name: a, services: [b], raw: 1}]' raw
wrong 'scrape_configs: [{jobname: a}]' job_name

# in_memory as a key; a rate by sender; stacks that are too deep.
printf 'in_memory: true\nlimits: {depth: 16}\nrate_limits: {bytes: 2000, burst: 1s}\n' >>keep.yaml
start_server limits -c keep.yaml
[ ! -e assay-data ]
[[ $(get /api/v1/health) == *'"kind":"memory"'* ]]
python3 -c 'print(";".join(f"f{i}" for i in range(100)) + " 7")' >deep.folded
push deep.folded 'service_name=deep' >/dev/null
get "/api/v1/types?$always" >types.json
type=$(json types.json "d[0][\"id\"]")
get "/api/v1/profile?query=$type%7Bservice_name%3D%22deep%22%7D&format=folded&$always" >stored.folded
[[ $(cat stored.folded) == '[truncated];f'*';f98;f99 7' ]]
[[ $(get /metrics) == *'assay_ingest_stacks_cut_total 1'* ]]
get /api/v1/senders >senders.json
json senders.json 'd[0]["cut"] == 1'

# One push may overdraw, the next is told when to come back; questions are answered all the time.
python3 -c 'for i in range(3000): print(f"main;f{i} 1")' >large.folded
push large.folded 'service_name=large' >/dev/null
status 429 -D head.txt --data-binary @deep.folded "$url/api/v1/push?service_name=deep"
[[ $(cat answer.txt) == *"Rate limit of bytes exceeded"* ]]
[[ $(cat head.txt) =~ [Rr]etry-[Aa]fter:\ [1-9][0-9]* ]]
get /api/v1/senders >senders.json
json senders.json 'd[0]["refused"]["rate_limited"] == 1'
[[ $(get /metrics) == *'assay_ingest_refused_total{reason="rate_limited"} 1'* ]]

# Read again without a rate, the sender is free at once, and other limits hold; what can't change is
# named.
sed -i -e '/rate_limits/d' -e 's/depth: 16/body: 2000, connections: 77/' keep.yaml
kill -HUP "$pid"
until grep 'Reloaded label rules' limits.log >/dev/null; do sleep 0.05; done
push deep.folded 'service_name=deep' >/dev/null
[[ $(get /metrics) == *'assay_ingest_stacks_cut_total 1'* ]]
status 413 --data-binary @large.folded "$url/api/v1/push?service_name=large"
grep 'limits.connections changed; restart the server' limits.log >/dev/null
stop_server

# Services are kept by classes of their own.
printf 'retention: [{name: long, services: [till], raw: 90d}, {raw: 1d}]\n' >classes.yaml
start_server classes --data classes -c classes.yaml
push deep.folded 'service_name=till&from=now-5m' >/dev/null
push deep.folded 'service_name=shop&from=now-5m' >/dev/null
push deep.folded 'service_name=till&from=now-48h' >/dev/null
status 422 --data-binary @deep.folded "$url/api/v1/push?service_name=shop&from=now-48h"
# Classes may change while it runs.
printf 'retention: [{name: long, services: [till, shop], raw: 90d}, {raw: 1d}]\n' >classes.yaml
kill -HUP "$pid"
until grep 'Reloaded label rules' classes.log >/dev/null; do sleep 0.05; done
push deep.folded 'service_name=shop&from=now-48h' >/dev/null
printf 'retention: {raw: 1d}\n' >classes.yaml
kill -HUP "$pid"
until [ "$(grep -c 'Reloaded label rules' classes.log)" = 2 ]; do sleep 0.05; done
status 422 --data-binary @deep.folded "$url/api/v1/push?service_name=till&from=now-48h"
stop_server

# The profiles can be in a store elsewhere, by its URL; everything else stays in the data directory,
# which still belongs to one server.
start_server elsewhere --data main --store "file:$PWD/profiles"
push deep.folded 'service_name=shop' >/dev/null
[[ $(get /api/v1/health) == *'"kind":"embedded"'* ]]
ls profiles/*/raw-*.assay >/dev/null
[ -e main/audit.log ]
[ ! -e profiles/audit.log ]
if "$ASSAY" server --data main --store memory: --listen 127.0.0.1:0 2>second.log; then exit 1; fi
grep -F 'main is in use by another process' second.log
stop_server
if "$ASSAY" server --data main --store redis://host 2>second.log; then exit 1; fi
grep -F 'No store engine has the scheme "redis"; use file:DIR, memory: or' second.log
