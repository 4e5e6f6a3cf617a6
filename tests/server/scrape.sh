# SPDX-License-Identifier: Apache-2.0
# Scraping programs that answer well and that don't: differences that add up, a restart, secrets,
# TLS, files of targets that change, a reload.
. "$ROOT/tests/server/common.bash"
type openssl >/dev/null || { echo "openssl is missing, which makes certificates."; exit 77; }
target=$ROOT/tests/server/scrape_target.py

start_target() { # NAME [certificate key]: its port is in NAME.port
    python3 "$target" "$1.port" "${@:2}" 2>"$1.target.log" &
    servers+=($!)
    until [ -s "$1.port" ]; do sleep 0.05; done
}

# holds EXPRESSION [tries]: of the targets as a dictionary t, by job and profile; until it does.
holds() {
    local tries=0
    while :; do
        get /api/v1/targets >targets.json
        python3 -c 'import json, sys
t = {}
for x in json.load(open("targets.json")): t[x["job"]] = x
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$1" 2>holds.log && return
        if [ $((tries += 1)) -gt 600 ]; then
            echo "$1 doesn't hold" >&2
            cat holds.log targets.json "$2" >&2
            return 1
        fi
        sleep 0.1
    done
}

total() { # SERVICE TYPE: the sum of all values
    get "/api/v1/flame?query=$2%7Bservice_name%3D%22$1%22%7D&$always" >flame.json
    json flame.json 'd["quality"]["total"]'
}
metric() { get /metrics | sed -n "s/^$1 //p"; }

space=memory:alloc_space:bytes:space:bytes
inuse=memory:inuse_space:bytes:space:bytes

# A certificate for localhost by an authority of its own, and another authority.
for ca in good wrong; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$ca" -keyout $ca-ca.key -out $ca-ca.pem 2>/dev/null
done
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=target \
    -keyout key.pem -out request.pem 2>/dev/null
printf 'subjectAltName=DNS:shop.example\n' >names
openssl x509 -req -in request.pem -CA good-ca.pem -CAkey good-ca.key -CAcreateserial -days 2 \
    -extfile names -out cert.pem 2>/dev/null

start_target plain
start_target tls cert.pem key.pem
port=$(cat plain.port)
tls=$(cat tls.port)
printf 'se cret\n' >password
printf 'abc\n' >token

job() { # NAME PREFIX [further keys]
    printf -- '- {job_name: %s, scrape_interval: 1s, scrape_timeout: 30s, profiling_config: {' "$1"
    printf 'path_prefix: /%s, pprof_config: {process_cpu: {enabled: false}, ' "$2"
    printf 'goroutine: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}}'
    printf '%s}\n' "${3:-}"
}
static=", static_configs: [{targets: ['127.0.0.1:$port']}]"
secure=", scheme: https, static_configs: [{targets: ['127.0.0.1:$tls']}]"
{
    cat keep.yaml
    printf 'limits: {body: 1MiB}\n'
    printf 'scrape_configs:\n'
    job good good "$static"
    job exact exact "$static"
    job restarts restarts "$static"
    for bad in hang garbage text empty page failing circle short endless; do
        job $bad $bad "$static" | sed 's/scrape_timeout: 30s/scrape_timeout: 2s/'
    done
    job redirect redirect "$static"
    job unfollowed redirect ", follow_redirects: false$static"
    job password password ", basic_auth: {username: me, password_file: password}$static"
    job token token ", authorization: {credentials_file: token}$static"
    job oldtoken token ", bearer_token: abc$static"
    job scheme scheme ", authorization: {type: Token, credentials: abc}$static"
    job nosecret token "$static"
    job lostsecret token ", bearer_token_file: none$static"
    job refused good ", static_configs: [{targets: ['127.0.0.1:1']}]"
    job tls good ", tls_config: {ca_file: good-ca.pem, server_name: shop.example}$secure"
    job wrongname good ", tls_config: {ca_file: good-ca.pem}$secure"
    job wrongca good ", tls_config: {ca_file: wrong-ca.pem, server_name: shop.example}$secure"
    job unverified good ", tls_config: {insecure_skip_verify: true}$secure"
    job files good ", file_sd_configs: [{files: [targets/*.json, targets/*.yml]}]"
    job rare good ", static_configs: [{targets: ['127.0.0.1:$port'], labels: {service_name: till,
        zone: west, card: '4111 1111 1111 1111'}}]" | sed 's/scrape_interval: 1s/scrape_interval: 1h/'
} >config.yaml
printf -- '- {job_name: query, scrape_interval: 1s, params: {a: x y}, profiling_config: {
  pprof_config: {process_cpu: {enabled: false}, goroutine: {enabled: false},
  mutex: {enabled: false}, block: {enabled: false}, memory: {seconds: 2, path: /query}}}%s}\n' \
    "$static" >>config.yaml
mkdir targets
start_server scrape --data store -c config.yaml

# Who answers well is up; who doesn't is down, and it is said why.
holds 'all(t[j]["health"] == "up" for j in ["good", "restarts", "redirect", "password", "token",
    "oldtoken", "scheme", "tls", "unverified", "rare", "query"])' scrape.log
down() { holds "t['$1']['health'] == 'down' and '''$2''' in t['$1']['last_error']" scrape.log; }
down hang "didn't answer in time"
down garbage "The answer"
down text "The answer"
down empty "The answer is empty"
down page "a page, not a profile"
down failing "answered 500: Could not enable CPU profiling"
down circle "redirects"
down short "failed"
down endless "larger than 1048576 bytes"
down unfollowed "answered 302"
down nosecret "answered 401: who are you?"
down lostsecret "none"
down refused "Failed to connect"
down wrongname "is not trusted"
down wrongca "is not trusted"

# The first scrape is at once, whatever the interval.
holds 't["rare"]["scrapes"] == 1 and t["rare"]["next_in_seconds"] > 60' scrape.log
json targets.json '[x["labels"] for x in d if x["job"] == "rare"][0]["instance"].startswith("127.")'

# Differences add up to what was allocated while we looked, through new stacks and new addresses;
# a restart costs what nobody can know. What is in use is a gauge, from the first scrape on.
holds 't["exact"]["scrapes"] >= 7 and t["restarts"]["scrapes"] >= 10' scrape.log
[ "$(total exact $space)" = "$(python3 "$target" expected exact)" ]
[ "$(total restarts $space)" = "$(python3 "$target" expected restarts)" ]
[ "$(total till $inuse)" = 570 ]
[ "$(total till $space)" = 0 ]
[ "$(metric assay_delta_restarts_total)" = 1 ]

# Labels go through the same rules as those of pushes, and refusals are counted by reason.
[[ $(get "/api/v1/label/card/values?$always") != *4111* ]]
[[ $(get "/api/v1/label/zone/values?$always") == *west* ]]
get /api/v1/senders >senders.json
json senders.json 'any(x["sender"] == "scrape:garbage" and x["refused"].get("malformed", 0) > 0
    for x in d)'
[ "$(metric 'assay_scrape_failures_total{reason="tls"}')" -gt 0 ]
[ "$(metric 'assay_scrape_failures_total{reason="timeout"}')" -gt 0 ]
[ "$(metric 'assay_scrape_failures_total{reason="too_large"}')" -gt 0 ]
[ "$(metric 'assay_scrape_targets{job="good",health="up"}')" = 1 ]
[ "$(metric 'assay_scrape_targets{job="hang",health="down"}')" = 1 ]

# Files of targets: one comes, breaks, is good again, another comes, both go.
now_holds() { holds "$1" scrape.log; }
put() { printf '%s' "$2" >"$1.new" && mv "$1.new" "$1"; }
count='len([x for x in json.load(open("targets.json")) if x["job"] == "files"])'
now_holds "$count == 0"
put targets/a.json "[{\"targets\":[\"127.0.0.1:$port\"],\"labels\":{\"service_name\":\"filed\"}}]"
now_holds "$count == 1 and t['files']['health'] == 'up'"
put targets/a.json '[{"targets":'
until grep 'a.json contains no valid groups of targets.*Keeping the previous targets' scrape.log >/dev/null; do sleep 0.1; done
[ "$(metric assay_scrape_broken_files)" = 1 ]
now_holds "$count == 1"
put targets/b.yml "[{targets: ['127.0.0.1:$port'], labels: {service_name: other}}]"
now_holds "$count == 2"
put targets/a.json '[]'
now_holds "$count == 1 and t['files']['labels']['service_name'] == 'other'"
rm targets/b.yml
now_holds "$count == 0"

# A reload: jobs come and go, and what stays goes on as if nothing had happened.
get /api/v1/targets >before.json
first=$(metric assay_delta_first_total)
sed -i '/job_name: wrongca/d; /job_name: endless/d' config.yaml
sed -i 's/job_name: unverified, scrape_interval: 1s/job_name: unverified, scrape_interval: 2s/' \
    config.yaml
kill -HUP "$pid"
now_holds '"wrongca" not in t and "endless" not in t'
now_holds 't["unverified"]["interval_seconds"] == 2'
json before.json '[x["scrapes"] for x in d if x["job"] == "good"][0] <=
    [x["scrapes"] for x in json.load(open("targets.json")) if x["job"] == "good"][0]'
now_holds 't["rare"]["scrapes"] == 1'
[ "$(metric assay_delta_first_total)" = "$first" ]
printf 'scrape_configs: [{job_name: x, scheme: gopher}]\n' >wrong.yaml
[[ $("$ASSAY" server --check-config -c wrong.yaml 2>&1) == *wrong.yaml:1:*scheme* ]]
cp config.yaml good.yaml
cp wrong.yaml config.yaml
kill -HUP "$pid"
until grep 'stays in effect' scrape.log >/dev/null; do sleep 0.1; done
now_holds 't["good"]["health"] == "up"'

# A stop doesn't wait for those that hang.
stop_server
[[ $(cat scrape.log) == *stopping* ]]
