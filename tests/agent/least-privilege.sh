# SPDX-License-Identifier: Apache-2.0
# The agent has the capabilities it needs and no others, cannot get more, and makes few system calls;
# each capability is taken away once, to see that it was needed for what docs/agent.md says.
. "$ROOT/tests/agent/common.bash"

[ "$(id -u)" -eq 0 ] || { echo "Only root can give capabilities away."; exit 77; }
type setpriv >/dev/null || { echo "setpriv is missing."; exit 77; }
[[ $(setpriv --list-caps) == *checkpoint_restore* ]] ||
    { echo "setpriv doesn't know all capabilities."; exit 77; }
kept=(bpf perfmon sys_ptrace dac_read_search checkpoint_restore syslog)
set=000001c400080004

chmod 711 "$PWD/.." "$PWD"
mkdir -m 777 own
cp "$ASSAY" own/assay
setpriv --reuid 65534 --regid 65534 --clear-groups own/assay version >/dev/null 2>&1 ||
    { echo "Another user cannot run the program here."; exit 77; }

# confined PID [LINE]: all of its threads are. What could be had by executing a program is limited
# only by who may limit that, but nothing can be had so.
confined() {
    cat /proc/"$1"/task/*/status >threads.txt
    local threads
    threads=$(grep -c '^Pid:' threads.txt)
    [ "$threads" -ge 5 ]
    for line in "CapInh:	0000000000000000" "CapPrm:	$set" "CapEff:	$set" "${@:2}" \
        "CapAmb:	0000000000000000" "NoNewPrivs:	1" "Seccomp:	2"; do
        [ "$(grep -c "^$line\$" threads.txt)" -eq "$threads" ] ||
            { echo "not all threads have $line" >&2; cat threads.txt >&2; return 1; }
    done
}

start_server server --data store
# Programs of another user: one that nobody else may read, one that is deleted while it runs.
cp busy "secret-$$"
chmod 711 "secret-$$"
# Other code as well: build IDs don't cover names.
sed 's/busy_leaf/gone_leaf/; s/20000/20001/' busy.c >gone.c
cc -O1 -o gone gone.c
hogs=()
OTEL_SERVICE_NAME="secret-service-$$" "./secret-$$" 900 &
hogs+=("$!")
OTEL_SERVICE_NAME="gone-service-$$" ./gone 900 &
hogs+=("$!")
dd if=/dev/zero of=/dev/null bs=512 status=none & # which is in the kernel nearly all the time
hogs+=("$!")
agents+=("${hogs[@]}")
await_cpu 0.1 "${hogs[@]}" # they run
rm gone

# As root.
start_agent root
need_host root
bounded="CapBnd:	$set"
if ! grep 'Sampling by BPF' root.log >/dev/null; then echo "There is no BPF here."; exit 77; fi
confined "$agent" "$bounded"
stop_agent

# As root that becomes somebody else, who then owns the directory.
printf 'user: nobody\nrate: 99\nbudget: {cpu_percent: 50}\n' >user.yaml
start_agent becomes --config user.yaml
confined "$agent" "$bounded"
[[ $(grep '^Uid:' "/proc/$agent/status") == "Uid:	65534	65534	65534	65534" ]]
await_cpu 0.5 "${hogs[@]}"
stop_agent
[ "$(stat -c %u becomes)" -eq 65534 ]
[ -z "$(find becomes ! -user 65534)" ]
[ "$(python3 -c "print($(seconds "{service_name=\"gone-service-$$\"}") > 0)")" = True ]
echo 'user: nosuchuser' >user.yaml
status=0
"$ASSAY" agent --server "$url" --data "$PWD/nosuch" --config user.yaml 2>nosuch.log || status=$?
[ "$status" -eq 1 ]
grep 'Unknown user nosuchuser' nosuch.log >/dev/null

# begin NAME CAPABILITY...: an agent that is started with these alone. All of them run at once.
declare -A trials
begin() {
    local name=$1 list=-all
    shift
    for capability in "$@"; do list+=",+$capability"; done
    # Everything that it sends says so.
    printf 'external_labels: {trial: %s}\nrate: 99\nbudget: {cpu_percent: 50}\nsymbolize: host\n' "$name" >"$name.yaml"
    mkdir -m 777 "own/$name"
    : >"$name.log"
    setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps="$list" --ambient-caps="$list" \
        own/assay agent --server "$url" --data "$PWD/own/$name/data" --config "$name.yaml" \
        2>"$name.log" &
    trials[$name]=$!
    agents+=("$!")
}
begin_without() { # CAPABILITY
    local left=()
    for capability in "${kept[@]}"; do
        [ "$capability" = "$1" ] || left+=("$capability")
    done
    begin "no_$1" "${left[@]}"
}
# end NAME, which was told to: after a few seconds of sampling; its answers are in files then.
end() {
    local name=$1
    wait "${trials[$name]}"
    for service in "secret-service-$$" "gone-service-$$" "secret-$$" dd; do
        # Of what is not there, it says so.
        curl -sS --get "$url/api/v1/top?$always" \
            --data-urlencode "query=cpu{trial=\"$name\",service_name=\"$service\"}" >"$name.$service.json"
    done
    get "/api/v1/series?$always" >"$name.series.json"
}
functions() { # NAME SERVICE: of this trial
    python3 -c 'import json, sys
print(" ".join(f["function"] for f in json.load(open(sys.argv[1])).get("functions", [])))' "$1.$2.json"
}
served() { # NAME: its services
    python3 -c 'import json, sys
for s in json.load(open(sys.argv[1])):
    if s["labels"].get("trial") == sys.argv[2]: print(s["labels"]["service_name"])' "$1.series.json" "$1"
}

begin whole "${kept[@]}"
begin no_bpf_syslog perfmon sys_ptrace dac_read_search checkpoint_restore
for capability in bpf perfmon sys_ptrace dac_read_search checkpoint_restore; do
    begin_without "$capability"
done
for name in "${!trials[@]}"; do
    tries=0
    until grep 'Sampling by' "$name.log" >/dev/null || ! kill -0 "${trials[$name]}" 2>/dev/null; do
        [ $((tries += 1)) -lt 2400 ]
        sleep 0.05
    done
done
confined "${trials[whole]}"
await_cpu 1.5 "${hogs[@]}"
for name in "${!trials[@]}"; do # all at once; those that couldn't start have ended before
    kill -TERM "${trials[$name]}" 2>/dev/null || unset "trials[$name]"
done
for name in "${!trials[@]}"; do end "$name"; done

grep 'Sampling by BPF' whole.log >/dev/null
[[ $(functions whole "secret-service-$$") == *busy_leaf* ]]
[[ $(functions whole "gone-service-$$") == *gone_leaf* ]]
[[ $(served whole) == *secret-service-$$* ]]
[[ $(served whole) == *gone-service-$$* ]]
# Without bpf, samples are taken by other means.
grep 'Sampling by perf events' no_bpf.log >/dev/null
kernel='do_syscall_64|vfs_read|vfs_write|__x64_sys_read|__x64_sys_write|entry_SYSCALL_64'
[[ $(functions no_bpf dd) =~ $kernel ]]
# Without syslog, too, the kernel's functions have no names.
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ] || [ "$(cat /proc/sys/kernel/kptr_restrict)" -gt 0 ]; then
    [[ ! $(functions no_bpf_syslog dd) =~ $kernel ]]
fi
# Without perfmon there is nothing of others.
if grep 'Sampling by BPF' no_perfmon.log; then exit 1; fi
# Without sys_ptrace files can't be opened by way of other users' processes.
[[ $(functions no_sys_ptrace "gone-service-$$") != *gone_leaf* ]]
# Without dac_read_search environments of others, and binaries they may not read, are unknown.
[[ $(served no_dac_read_search) != *secret-service-$$* ]]
grep -x "secret-$$" <(served no_dac_read_search) >/dev/null
[[ $(functions no_dac_read_search "secret-$$") != *busy_leaf* ]]
# Without checkpoint_restore deleted files have no names.
[[ $(functions no_checkpoint_restore "secret-service-$$") == *busy_leaf* ]]
[[ $(functions no_checkpoint_restore "gone-service-$$") != *gone_leaf* ]]
