# SPDX-License-Identifier: Apache-2.0
# The agent's cost in its first half minute, its start included, by the kernel's own accounting, with
# all CPUs busy and hundreds of processes: it is within the budget. With next to no budget it takes
# everything away step by step, says so in the log, to whoever asks and in the data, and comes back.
. "$ROOT/tests/agent/common.bash"

processes=${ASSAY_TEST_PROCESSES:-200}
cat >crowd.py <<'P'
# N processes that sleep, some that work now and then, one for each CPU that works all the time.
import ctypes, os, sys, time
count, seconds = int(sys.argv[1]), float(sys.argv[2])
end = time.monotonic() + seconds
children = []
for i in range(count):
    pid = os.fork()
    if not pid:
        ctypes.CDLL(None).prctl(1, 9)  # ends with its parent
        nap = 0.05 if i % 20 == 0 else 5
        while time.monotonic() < end:
            if i < os.cpu_count():
                sum(range(20000))
            else:
                time.sleep(min(nap, max(end - time.monotonic(), 0)))
        os._exit(0)
    children.append(pid)
print("ready", flush=True)
for pid in children:
    os.waitpid(pid, 0)
P

# A server that keeps what it gets.
cat >sink.py <<'P'
import http.server, sys
class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "profiles" in self.path:
            open(f"{sys.argv[1]}/{self.headers['X-Assay-Batch-Id']}", "wb").write(body)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    do_GET = do_POST
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
P
mkdir bodies
: >sink.txt
python3 sink.py bodies >sink.txt &
servers+=("$!")
until [ -s sink.txt ]; do sleep 0.05; done
# shellcheck disable=SC2034 # start_agent has it
url=$(cat sink.txt)

metric() { # NAME METRIC
    curl -sS --unix-socket "$PWD/$1/agent.sock" http://localhost/metrics >metrics.txt
    sed -n "s/^assay_agent_$2 //p" metrics.txt
}
# used NAME PID: seconds of CPU time of the process and of its BPF programs, as the kernel counts them.
used() {
    local ticks
    ticks=$(awk '{ print $14 + $15 }' <(sed 's/^.*) /0 x /' "/proc/$2/stat"))
    python3 -c "print($ticks / $(getconf CLK_TCK) + max(0, $(metric "$1" bpf_seconds_total)))"
}

# started PID: seconds since the machine's start at which it began.
started() { awk -v hz="$(getconf CLK_TCK)" '{ print $22 / hz }' <(sed 's/^.*) /0 x /' "/proc/$1/stat"); }

: >crowd.txt
python3 crowd.py "$processes" 600 >crowd.txt &
crowd=$!
agents+=("$crowd")
until grep ready crowd.txt >/dev/null; do sleep 0.1; done
start_agent usual
need_host usual
usual=$agent
starting=$(used usual "$usual") # programs that were loaded, once

# Next to nothing is allowed.
printf 'budget: {cpu_percent: 0.01, patience: 3s}\n' >starved.yaml
start_agent starved --config starved.yaml
tries=0
until grep '0 Hz (paused)' starved.log >/dev/null; do
    [ $((tries += 1)) -lt 1200 ]
    kill -0 "$agent"
    sleep 0.1
done
status_of starved
json starved.status.json 'd["budget_level"] > 0 and d["budget_steps_down"] >= 1'
json starved.status.json 'd["budget_reason"] == "cpu" and "limit 0.01%" in d["budget_why"]'
[ "$(metric starved 'budget_exceeded{limit="cpu"}')" = 1 ]
[ "$(metric starved budget_steps_down_total)" -ge 1 ]
grep 'Throttled to' starved.log >/dev/null
if grep 'by BPF' starved.log >/dev/null; then grep 'busiest processes only' starved.log >/dev/null; fi
# It tries again after a while; and on its own.
until grep 'Sampling rate raised to' starved.log >/dev/null; do
    [ $((tries += 1)) -lt 3000 ]
    kill -0 "$agent"
    sleep 0.1
done
[ "$(metric starved budget_steps_up_total)" -ge 1 ]
[ "$(metric starved budget_rest_seconds_total | cut -d. -f1)" -ge 1 ]
stop_agent

# The one with the usual budget, from its first moment on.
sleep "$(awk -v began="$(started "$usual")" '{ left = began + 30 - $1; print (left > 0 ? left : 0) }' /proc/uptime)"
passed=$(awk -v began="$(started "$usual")" '{ print $1 - began }' /proc/uptime)
share=$(python3 -c "import os; print($(used usual "$usual") / $passed / os.cpu_count())")
echo "$share of the host"
# Loading the programs is paid once, before there is anything to throttle. On a machine that is slow, or
# where compilers and the like start all the time, there is more to learn than fits: then the guard has
# noticed, and what it can do something about is not far beyond.
lasting=$(python3 -c "import os; print($share - $starting / $passed / os.cpu_count())")
if [ "$(python3 -c "print($lasting <= 0.01)")" != True ]; then
    grep 'Throttled to' usual.log
    [ "$(python3 -c "print($lasting <= 0.0125)")" = True ]
fi
status_of usual
json usual.status.json 'd["resident_bytes"] <= 128 << 20 and d["budget_cpu_limit"] == 0.01'
json usual.status.json 'd["windows_dropped"] == 0 and d["budget_upload"] <= 1 << 20'
peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$usual/status")
[ "$peak" -le $((128 << 10)) ]
kill -TERM "$usual"
wait "$usual"
kill -9 "$crowd"
for body in bodies/*; do "$ASSAY" info "$body" >>comments.txt; done
grep 'budget: sampled from here on at' comments.txt >/dev/null
grep 'limit 0.01%' comments.txt >/dev/null

# Wrong budgets are refused with the place where they are.
printf 'budget: {cpu_percent: 0, memory: 1MiB, uplaod: 1MiB}\n' >wrong.yaml
if "$ASSAY" agent --check-config --config wrong.yaml 2>wrong.txt; then exit 1; fi
grep 'cpu_percent' wrong.txt >/dev/null
grep 'memory' wrong.txt >/dev/null
grep 'upload' wrong.txt >/dev/null
