# SPDX-License-Identifier: Apache-2.0
# For tests that break a disk under load: the load program as a coprocess, one word at a time.

begin_load() { # options...
    coproc LOAD { python3 "$ROOT/tests/server/load.py" pause "$@" 2>&1; }
    load_pid=$LOAD_PID
    servers+=("$load_pid")
    heard port
    port=$(sed -n 's/^port \([0-9]*\) .*/\1/p' <<<"$line")
    server_pid=$(sed -n 's/.* pid \([0-9]*\)$/\1/p' <<<"$line")
    servers+=("$server_pid")
}

# Reads what the load program says until a line begins with this; fails when it ends before.
heard() {
    while IFS= read -r line <&"${LOAD[0]}"; do
        echo "$line" >&2
        [[ $line != "$1"* ]] || return 0
    done
    echo "The load program has ended." >&2
    return 1
}

tell() {
    echo "$*" >&"${LOAD[1]}"
    heard "done $*"
}

end_load() {
    eval "exec ${LOAD[1]}>&-"
    wait "$load_pid"
}
