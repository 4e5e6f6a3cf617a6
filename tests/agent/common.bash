# SPDX-License-Identifier: Apache-2.0
# What tests of the agent share: a server, an agent that sends to it, programs that use CPU time.
. "$ROOT/tests/server/common.bash"

agents=()
trap 'for p in "${agents[@]}" "${servers[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT

type cc >/dev/null || { echo "There is no C compiler."; exit 77; }

# Functions with names of their own; the argument is the CPU time, a second one what runs then. It
# prints the CPU time that the kernel says it used, and doesn't outlive the test.
#
# Agents see all of the machine, other tests' programs and those of other runs included: what a test
# counts has a name that no other has, with $$ in it.
cat >busy.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void busy_leaf(void)
{
    for (int i = 0; i < 20000; i++)
        sink += (unsigned long)i * sink;
}
__attribute__((noinline)) double busy_caller(double seconds)
{
    struct timespec now;
    do {
        busy_leaf();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec + now.tv_nsec / 1e9 < seconds);
    return now.tv_sec + now.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dprintf(1, "%.3f\n", busy_caller(argc > 1 ? atof(argv[1]) : 1));
    if (argc > 2)
        execv(argv[2], argv + 2);
    return 0;
}
C
cc -O1 -o busy busy.c

# start_agent NAME [options]: sets $agent; its stderr is in NAME.log, its data in NAME.
start_agent() {
    local name=$1
    shift
    : >"$name.log"
    "$ASSAY" agent --server "$url" --data "$PWD/$name" "$@" 2>"$name.log" &
    agent=$!
    agents+=("$agent")
    local tries=0
    until grep 'Sampling by' "$name.log" >/dev/null; do
        if ! kill -0 "$agent" 2>/dev/null; then
            cat "$name.log" >&2
            return 1
        fi
        [ $((tries += 1)) -lt 2400 ]
        sleep 0.05
    done
}

# cpu_of PID: seconds of CPU time that the kernel says it has used.
cpu_of() { awk -v hz="$(getconf CLK_TCK)" '{ print ($12 + $13) / hz }' <(sed 's/^.*) //' "/proc/$1/stat"); }

# await_cpu SECONDS PID...: until each of them has used so much more, however busy this machine is.
await_cpu() {
    local wanted=$1 pid tries=0
    local -A before
    shift
    for pid in "$@"; do before[$pid]=$(cpu_of "$pid"); done
    for pid in "$@"; do
        until awk -v a="${before[$pid]}" -v b="$(cpu_of "$pid")" -v wanted="$wanted" \
            'BEGIN { exit b - a < wanted }'; do
            [ $((tries += 1)) -lt 1200 ] || { echo "Process $pid gets no CPU time." >&2; return 1; }
            sleep 0.1
        done
    done
}

# Its last window goes to the server first.
stop_agent() {
    kill -TERM "$agent"
    wait "$agent"
}

# Whether this user may sample the machine: who may not is told so by another test.
need_host() {
    if grep 'of this user' "$1.log" >/dev/null; then
        echo "This user may not sample the whole machine."
        exit 77
    fi
}

# seconds SELECTOR: CPU seconds that the server has of it.
seconds() {
    curl -sS --fail-with-body --get --data-urlencode "query=cpu$1" "$url/api/v1/top?$always" >top.json
    python3 -c 'import json; print(json.load(open("top.json"))["total"] / 1e9)'
}

# Most of what tests count shall not depend on what else this machine does: the guard leaves such an
# agent alone.
echo 'budget: {cpu_percent: 50, memory: 1GiB, upload: 100MiB}' >generous.yaml

# stolen: seconds that whoever runs this machine has taken from its CPUs. Programs may be charged for
# them, and no timer fires in them.
stolen() { awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { print $9 / hz }' /proc/stat; }
stolen_before=$(stolen)

# about SECONDS WANTED [NAME]: within what chance does to samples at 19 Hz, four times out. Of the agent
# NAME, which still runs or was asked before (status_of), what it says it has not sampled may be
# missing as well.
about() {
    [ -z "${3:-}" ] || [ -s "$3.status.json" ] || status_of "$3"
    python3 -c 'import json, sys
got, wanted, stolen = (float(word) for word in sys.argv[1:4])
rate, missing = 19, max(stolen, 0)
if len(sys.argv) > 4:
    status = json.load(open(sys.argv[4]))
    rate = max(rate >> int(status["budget_steps_down"]), 1)
    lost = sum(status["losses"].get(reason, 0) for reason in ("ring_full", "stack_ring_full", "left_out"))
    missing += status["budget_rest_seconds"] + lost / rate
limit = wanted * 4 / max(wanted * rate, 1) ** 0.5 + 0.1
if not wanted - limit - missing <= got <= wanted + limit:
    sys.exit(f"{got} s instead of {wanted} s, +-{limit:.2f}, with {missing:.2f} s missing")' \
        "$1" "$2" "$(python3 -c "print($(stolen) - $stolen_before)")" ${3:+"$3.status.json"}
}

# status_of NAME: what that agent says of itself, in NAME.status.json.
status_of() { "$ASSAY" agent status --data "$PWD/$1" --json >"$1.status.json"; }

services() { get "/api/v1/label/service_name/values?$always"; }
