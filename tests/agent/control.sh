# SPDX-License-Identifier: Apache-2.0
# The switch, by each of its three ways: samples end and the kernel has nothing of ours left that
# samples; on again; over restarts. And recordings: what was asked for, within this host's limits.
. "$ROOT/tests/agent/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

start_server server --data store -c keep.yaml
cp generous.yaml agent.yaml
cat >>agent.yaml <<YAML
off_file: $PWD/off
recordings: {rate_max: 999, seconds_max: 6}
rules:
  - match: {exe: $PWD/busy}
    labels: {service_name: busy-service}
  - match: {exe: $PWD/other}
    labels: {service_name: other-service}
YAML
cp busy other
start_agent one -c agent.yaml
need_host one
./busy 600 & busy=$!
./other 600 & other=$!
agents+=("$busy" "$other")

status() { "$ASSAY" agent status --json --data "$PWD/one"; }
# What of ours the kernel runs on events, by the agent's descriptors: nobody else holds them.
attached() {
    local fd count=0
    for fd in "/proc/$agent/fd/"*; do
        case $(readlink "$fd" 2>/dev/null || true) in
        'anon_inode:[perf_event]' | anon_inode:bpf_link) count=$((count + 1)) ;;
        esac
    done
    echo "$count"
}
await() { # SECONDS COMMAND...: until it is true
    local tries=$(($1 * 20))
    shift
    until "$@"; do
        if [ $((tries -= 1)) -le 0 ]; then
            echo "Never: $*"
            status || true
            tail -n 20 one*.log
            return 1
        fi
        sleep 0.05
    done
}
is_off() { [ "$(attached)" = 0 ]; }
is_on() { [ "$(attached)" -gt 0 ]; }
more_samples() { [ "$(status | jq .samples)" -gt "$1" ]; }
said() { status >status.json && jq -e "$1" status.json >/dev/null; }

is_on
await 20 more_samples 0
check_off() { # WHY: samples have ended, and the agent says so
    await 10 is_off
    await 10 said ".capture == \"off\" and (.capture_reason | test(\"$1\")) and .capture_off == 1"
    [[ $("$ASSAY" agent status --data "$PWD/one") == *"sampling  off: "* ]]
    sleep 1.2 # its figures are of each second
    local before
    before=$(status | jq .samples)
    sleep 1.2
    [ "$(status | jq .samples)" = "$before" ] && is_off
}
check_on() {
    await 10 is_on
    local before
    before=$(status | jq .samples)
    await 20 more_samples "$before"
    said '.capture == "on" and .capture_reason == ""'
}
for way in signal file server; do
    case $way in
    signal) kill -USR1 "$agent" ;;
    file) touch off ;;
    server) "$ASSAY" control off --server "$url" -m 'an incident' >/dev/null ;;
    esac
    case $way in
    signal) check_off signal ;;
    file) check_off "$PWD/off" ;;
    server) check_off 'server: an incident' ;;
    esac
    # It is as true after a restart: nothing is sampled in between.
    stop_agent
    cp one.log "one-$way.log"
    : >one.log
    "$ASSAY" agent --server "$url" --data "$PWD/one" -c agent.yaml 2>one.log &
    agent=$!
    agents+=("$agent")
    await 20 grep -q 'Capture is off' one.log
    is_off
    await 10 said '.capture == "off" and .samples == 0'
    case $way in
    signal) kill -USR2 "$agent" ;;
    file) rm off ;;
    server) "$ASSAY" control on --server "$url" >/dev/null ;;
    esac
    check_on
done
# The server knows who has done as it said.
"$ASSAY" control off --server "$url" >/dev/null
await 10 is_off
server_knows() { [[ $("$ASSAY" control status --server "$url") == *"1 don't capture"* ]]; }
await 10 server_knows
"$ASSAY" control on --server "$url" >/dev/null
check_on

# A recording: it comes under its name, with about a sample for each millisecond of CPU time.
before=$(cpu_of "$busy")
"$ASSAY" recording start --server "$url" --service busy-service --rate 999 --seconds 3 --name 'close look' --wait >recording.txt &
recording=$!
await 60 grep -q 'busy-service is running' one.log
# What was used from here on until just before it ended has to be in it.
first=$(cpu_of "$busy")
last=$first
while now=$(cpu_of "$busy") && kill -0 "$recording" 2>/dev/null &&
    ! grep 'busy-service is uploading' one.log >/dev/null; do
    last=$now
    sleep 0.05
done
wait "$recording"
used=$(python3 -c "print($(cpu_of "$busy") - $before)")
least=$(python3 -c "print($last - $first)")
[[ $(cat recording.txt) == *'is done with '* ]]
id=$(sed -n 's/^\(r[0-9a-f]*\): .*/\1/p' recording.txt)
ask() { curl -sS --fail-with-body --get --data-urlencode "query=$1" "$url/api/v1/top?$always"; }
ask "cpu{recording=\"$id\"}" >recorded.json
python3 - "$used" "$least" <<'PY'
import json, sys
used, least, got = float(sys.argv[1]), float(sys.argv[2]), json.load(open("recorded.json"))["total"] / 1e9
# The most is all that the program used while somebody waited for the agent and the upload.
assert got > 0 and 0.6 * least - 0.2 <= got <= used + 0.3, f"{got} s recorded of {least} to {used} s"
PY
# The server asks for the program's symbols, and has names a little later.
named() { ask "cpu{recording=\"$id\"}" | jq -e 'any(.functions[]; .function == "busy_leaf")' >/dev/null; }
await 90 named
[ "$(ask 'cpu{recording_name="close look"}' | jq .total)" = "$(jq .total recorded.json)" ]
curl -sS --get --data-urlencode "query={recording=\"$id\"}" "$url/api/v1/label/service_name/values?$always" >services.json
jq -e '. == ["busy-service"]' services.json >/dev/null
# The continuous profile goes on beside it, and has none of it twice.
total() { ask "cpu{service_name=\"busy-service\"$1}" | jq .total; }
whole=$(total ',recording=~".*"')
usual=$(total '')
[ "$usual" -gt 0 ] && [ "$((whole - $(jq .total recorded.json)))" -le "$usual" ] && [ "$whole" -gt "$usual" ]

# Beyond this host's limits it is refused, and says why.
refused() { # REASON options...
    local reason=$1
    shift
    if "$ASSAY" recording start --server "$url" --wait "$@" >refused.txt 2>/dev/null; then exit 1; fi
    [[ $(cat refused.txt) == *"is refused"*"$reason"* ]]
}
refused '6 s at most' --service busy-service --seconds 7
refused '999 Hz at most' --service busy-service --rate 1000 --seconds 2
refused 'No process of the service nothing' --service nothing --seconds 2
"$ASSAY" recording start --server "$url" --service busy-service --seconds 6 --name long >/dev/null
await 10 grep -q 'busy-service is running' one.log
refused 'already running' --service other-service --seconds 2
# Turning capture off ends it.
touch off
await 10 is_off
ended() { [[ $("$ASSAY" recording list --server "$url") == *done*long* ]]; }
await 20 ended
refused 'Capture is off' --service busy-service --seconds 2
kill "$busy" "$other"
stop_agent
stop_server
