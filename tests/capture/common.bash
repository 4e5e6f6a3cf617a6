# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the tests of recording share. Each of their cases is a line `ok` or `not ok`, so that one run
# says of every sampler what it can do here. ASSAY_SAMPLERS chooses among them.

capture=$ROOT/tests/capture
subjects=$capture/subjects
failures=0
cases=0
export PYTHONDONTWRITEBYTECODE=yes # the checkout stays as it is
started=() # processes to end

pass() {
    echo "ok - $*"
    cases=$((cases + 1))
}
fail() {
    echo "not ok - $*"
    failures=$((failures + 1))
    cases=$((cases + 1))
}
skip_case() {
    echo "ok - $1 # SKIP $2"
    cases=$((cases + 1))
}
skip_all() {
    echo "$*"
    exit 77
}
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip_all "There is no $tool here."
    done
}

end_process() {
    kill "$1" 2>/dev/null || true
    for _ in $(seq 100); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
# Whether `assay record` has begun to record: it waits for samples, and for nothing before that. On a
# busy machine, beginning takes seconds.
is_recording() { grep -q poll "/proc/$1/wchan" 2>/dev/null; }

# finish [STATUS]: a trap that does something else before gives the status that it began with.
finish() {
    local status=${1:-$?} pid
    for pid in "${started[@]}"; do end_process "$pid"; done
    if [ "$status" -eq 0 ] && [ "$failures" -gt 0 ]; then status=1; fi
    if [ "$status" -eq 0 ] && [ "$cases" -eq 0 ]; then
        echo "not ok - the test ended without checking anything"
        status=1
    fi
    exit "$status"
}
trap finish EXIT

# The samplers that work here, each probed once.
samplers=()
for ASSAY_SAMPLER in ${ASSAY_SAMPLERS:-bpf perf}; do
    export ASSAY_SAMPLER
    if "$ASSAY" record -q -F 99 -o probe.pb.gz -- true 2>probe.said; then
        samplers+=("$ASSAY_SAMPLER")
    elif grep -E 'not available|perf_event_paranoid|no perf events|CAP_|root|pid namespace' probe.said >/dev/null; then
        reason="the sampler $ASSAY_SAMPLER cannot be used here: $(tr '\n' ' ' <probe.said)"
        skip_case "$ASSAY_SAMPLER" "$reason"
    else
        cat probe.said
        fail "the sampler $ASSAY_SAMPLER"
    fi
done
if [ ${#samplers[@]} -eq 0 ] && [ "$failures" -eq 0 ]; then skip_all "$reason"; fi

# at_rate N: sets `rate`, and `amount` to a quarter of N, where the sampler walks stacks in the kernel: as
# many samples in a quarter of the time. Copies of stacks would fill their ring at such a rate.
at_rate() {
    rate=999 amount=$1
    [ "$ASSAY_SAMPLER" != bpf ] || rate=3996 amount=$(($1 / 4))
}

# check NAME COMMAND...: passes when the command does; what it says is shown either way.
check() {
    local name=$1
    shift
    if "$@" >check.said 2>&1; then
        sed 's/^/# /' check.said
        pass "$name"
    else
        cat check.said
        fail "$name"
    fi
}
chains() { python3 "$capture/chains.py" "$@"; }

# wait_until SECONDS COMMAND...: until the command succeeds.
wait_until() {
    local tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# The highest resident memory of a process so far, in KiB; nothing when it is gone.
peak_kib() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null || true; }

# Does a binary have a symbol table, its own or in a separate file?
has_symbols() {
    local id
    [[ $(readelf -SW "$1" 2>/dev/null) != *.symtab* ]] || return 0
    id=$(readelf -nW "$1" 2>/dev/null | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] && [ -e "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ]
}

# A TCP port of 127.0.0.1 that nobody has.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
answers() { python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$1"; }

# CPU time of processes so far, in hundredths of a second.
cpu_ticks() {
    local pid sum=0 fields
    for pid in "$@"; do
        read -ra fields < <(sed 's/^.*) //' "/proc/$pid/stat" 2>/dev/null) || continue
        sum=$((sum + fields[11] + fields[12]))
    done
    echo "$sum"
}
have_used() { [ "$(cpu_ticks "${@:2}")" -ge "$1" ]; }
family() { echo "$1" && tr ' ' '\n' <"/proc/$1/task/$1/children" | { grep . || true; }; }
# shellcheck disable=SC2046
has_used_by_now() { have_used "$1" $(family "$2"); }

# real NAME PID OPTION...: with every sampler, records a process and its children under load and says
# how good it is. The load is the function `load`, given the seconds that it may last. Recorded is
# until they have used so much CPU time that there are several times as many samples as real.py
# wants, however busy the machine is.
real_ticks=${ASSAY_REAL_TICKS:-100}
real_cpu_seconds=2 # of programs that end by themselves
real() {
    local name=$1 pid=$2 loader recorder pids began
    shift 2
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        # shellcheck disable=SC2046
        began=$(cpu_ticks $(family "$pid"))
        set -m # the load in a process group of its own, to end all of it
        load 120 >load.said 2>&1 &
        loader=$!
        set +m
        wait_until 60 has_used_by_now $((began + 5)) "$pid" || fail "$name has nothing to do"
        mapfile -t pids < <(family "$pid")
        "$ASSAY" record -F 499 -p "$(IFS=, && echo "${pids[*]}")" -o real.pb.gz 2>said &
        recorder=$!
        began=$(cpu_ticks "${pids[@]}")
        wait_until 100 have_used $((began + real_ticks)) "${pids[@]}" ||
            fail "$name has used $(($(cpu_ticks "${pids[@]}") - began)) of $real_ticks ticks of CPU time"
        kill -INT "$recorder"
        wait "$recorder" || { cat said && exit 1; }
        sed 's/^/# /' said
        check "$name ($ASSAY_SAMPLER)" python3 "$capture/real.py" real.pb.gz "$@"
        kill -KILL -- "-$loader" 2>/dev/null || { cat load.said && fail "the load of $name ended early"; }
        wait "$loader" 2>/dev/null || true
    done
}
