# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the tests of recording share. Each of their cases is a line `ok` or `not ok`, so that one run
# says of every sampler what it can do here. ASSAY_SAMPLERS chooses among them.

capture=$ROOT/tests/capture
subjects=$capture/subjects
failures=0
export PYTHONDONTWRITEBYTECODE=yes # the checkout stays as it is
started=() # processes to end

pass() { echo "ok - $*"; }
fail() {
    echo "not ok - $*"
    failures=$((failures + 1))
}
skip_case() { echo "ok - $1 # SKIP $2"; }
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
finish() {
    local status=$? pid
    for pid in "${started[@]}"; do end_process "$pid"; done
    if [ "$status" -eq 0 ] && [ "$failures" -gt 0 ]; then status=1; fi
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

# real NAME PID OPTION...: with every sampler, records a process and its children under load and says
# how good it is. The load is the function `load`, given the seconds that it must last at least.
real_seconds=${ASSAY_REAL_SECONDS:-4}
real() {
    local name=$1 pid=$2 loader pids
    shift 2
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        load "$((real_seconds + 2))" >load.said 2>&1 &
        loader=$!
        started+=("$loader")
        sleep 0.5
        pids="$pid $(cat "/proc/$pid/task/$pid/children")"
        pids=$(xargs <<<"$pids" | tr ' ' ',')
        "$ASSAY" record -F 499 -p "$pids" -d "$real_seconds" -o real.pb.gz 2>said || { cat said && exit 1; }
        sed 's/^/# /' said
        check "$name ($ASSAY_SAMPLER)" python3 "$capture/real.py" real.pb.gz "$@"
        wait "$loader" || { cat load.said && fail "the load of $name"; }
    done
}
