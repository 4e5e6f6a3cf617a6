# SPDX-License-Identifier: Apache-2.0
# soak SECONDS: `assay up` under a load that changes all the time. Memory stays flat, no descriptor
# is left behind, nothing is lost, and the cost is within the budget all along.
. "$ROOT/tests/agent/common.bash"

cat >load.py <<'P'
# By turns of a few seconds: idle, all CPUs busy, storms of short processes, many that sleep.
import os, subprocess, sys, time
end = time.monotonic() + float(sys.argv[1])
def crowd(count, work, seconds):
    until = time.monotonic() + seconds
    children = []
    for _ in range(count):
        pid = os.fork()
        if not pid:
            while time.monotonic() < until:
                sum(range(20000)) if work else time.sleep(0.2)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
while time.monotonic() < end:
    time.sleep(2)
    crowd(os.cpu_count(), True, 4)
    storm = time.monotonic() + 4
    while time.monotonic() < storm:
        subprocess.run(["/bin/true"])
        time.sleep(0.02)
    crowd(150, False, 3)
    subprocess.run(["./busy", "1"])
P

# The agent's cost so far, in seconds, by the kernel's own accounting.
soak_used() {
    curl -sS --unix-socket "$PWD/data/agent/agent.sock" http://localhost/metrics >metrics.txt
    python3 - "$1" <<'P'
import os, sys
fields = open(f"/proc/{sys.argv[1]}/stat").read().rsplit(") ", 1)[1].split()
bpf = [float(l.split()[1]) for l in open("metrics.txt") if l.startswith("assay_agent_bpf_seconds_total ")][0]
print((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + max(bpf, 0))
P
}
soak_memory() { sed -n "s/^$2:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$1/status"; }
# Of sockets, pipes, events and maps; and of files, where binaries that are in use are kept open, up to
# a limit: a quarter of what the process may have open, and 512 (MODULES_OPEN_MAX), with 128 more for
# JITs' files and directories (JIT_DESCRIPTORS_MAX). The last is how often
# the same file is open, by whatever names. Directories that the agent holds are not searched.
soak_descriptors() { find "/proc/$1/fd" -mindepth 1 -not -lname '/*' | wc -l; }
soak_files() { find "/proc/$1/fd" -mindepth 1 -lname '/*' | wc -l; }
soak_files_max() {
    awk '/^Max open files/ { most = $4 / 4; print int(most < 512 ? most : 512) + 128 + 16 }' "/proc/$1/limits"
}
soak_repeats() {
    { find -L "/proc/$1/fd" -mindepth 1 -maxdepth 1 -type f -printf '%D:%i\n' 2>/dev/null || true; } |
        sort | uniq -c | sort -n | awk '{ most = $1 } END { print most + 0 }'
}
# Which one that is, for the log of a failure.
soak_repeated() {
    find -L "/proc/$1/fd" -mindepth 1 -maxdepth 1 -type f -printf '%D:%i %p\n' 2>/dev/null | sort |
        awk '{ count[$1]++; name[$1] = name[$1] " " $2 } END {
            for (id in count) if (count[id] > 4) print name[id] }' | tr ' ' '\n' | grep . |
        xargs -r ls -l --time-style=+ | sed 's/^.*fd/fd/' || true
}

soak() {
    local seconds=$1 tries=0 child load
    "$ASSAY" up --listen 127.0.0.1:0 --data "$PWD/data" 2>up.log &
    up=$!
    agents+=("$up")
    until grep 'Sampling by' up.log >/dev/null; do
        kill -0 "$up"
        [ $((tries += 1)) -lt 600 ]
        sleep 0.1
    done
    need_host up
    child=$(pgrep -P "$up" -f "assay agent" | sed -n 1p)
    OTEL_SERVICE_NAME="soaked-$$" ./busy 100000 &
    agents+=("$!")
    python3 load.py "$seconds" &
    load=$!
    agents+=("$load")
    sleep 30 # all binaries and their names are learned
    local began used memory descriptors
    began=$(cut -d' ' -f1 /proc/uptime)
    used=$(soak_used "$child")
    memory=$(soak_memory "$child" VmRSS)
    descriptors=$(soak_descriptors "$child")
    wait "$load"
    local ended used_then
    ended=$(cut -d' ' -f1 /proc/uptime)
    used_then=$(soak_used "$child")
    "$ASSAY" agent status --data "$PWD/data/agent" --json >status.json
    python3 -c "
import os
share = ($used_then - $used) / ($ended - $began) / os.cpu_count()
print(f'{100 * share:.2f}% of the host in {$ended - $began:.0f} s')
# Where the machine is slow or has much else to do the guard has noticed, and it is not far beyond.
limit = 0.0125 if 'Throttled to' in open('up.log').read() else 0.01
assert share <= limit, share"
    # Memory: within the budget at its peak, and what it has now isn't far from what it had.
    echo "memory: $memory kB, then $(soak_memory "$child" VmRSS) kB, at most $(soak_memory "$child" VmHWM) kB"
    [ "$(soak_memory "$child" VmHWM)" -le $((128 << 10)) ]
    [ "$(soak_memory "$child" VmRSS)" -le $((memory + (32 << 10))) ]
    echo "descriptors: $descriptors, then $(soak_descriptors "$child"); files: $(soak_files "$child")," \
        "one of them $(soak_repeats "$child") times"
    [ "$(soak_descriptors "$child")" -le $((descriptors + 8)) ]
    [ "$(soak_files "$child")" -le "$(soak_files_max "$child")" ]
    [ "$(soak_repeats "$child")" -le 4 ] || { soak_repeated "$child" && false; }
    local missed=0
    json status.json "d['windows'] >= $seconds // 10"
    if grep ' 1 Hz' up.log >/dev/null; then missed=3; fi
    missed=$((missed + $(json status.json 'int(d["budget_rest_seconds"] / 10 + 0.99)')))
    json status.json 'd["windows_dropped"] == 0 and d["spool_dropped"] == 0'
    json status.json 'd["losses"].get("ring_full", 0) == 0 and d["upload_failures"] <= 1'
    [ "$(pgrep -P "$up" -f 'assay agent' | sed -n 1p)" = "$child" ] # it never ended
    kill -TERM "$up"
    wait "$up"
    # All windows are there, without a gap. Where the guard took a sample a second and the machine had
    # other things to do, one may have nothing of this program.
    start_server again --data data/store
    url=$url get "/api/v1/series?$always" >series.json
    curl -sS --fail-with-body --get --data-urlencode "query=cpu{service_name=\"soaked-$$\"}" \
        "$url/api/v1/top?$always" >top.json
    json top.json "d['quality']['windows'] >= $seconds / 10 - 1 - $missed"
}
