# SPDX-License-Identifier: Apache-2.0
# For tests that break a disk under load: the load program beside them, told one word at a time.
# Through two named pipes: bash loses sight of a coprocess, and of its pipes, when it ends, and may
# do so while other processes come and go.

begin_load() { # options...
    rm -f load.in load.out
    mkfifo load.in load.out
    python3 "$ROOT/tests/server/load.py" pause "$@" <load.in >load.out 2>&1 &
    load_pid=$!
    servers+=("$load_pid")
    # In the order in which the other side opens them.
    exec {load_in}>load.in {load_out}<load.out
    heard port
    port=$(sed -n 's/^port \([0-9]*\) .*/\1/p' <<<"$line")
    server_pid=$(sed -n 's/.* pid \([0-9]*\)$/\1/p' <<<"$line")
    servers+=("$server_pid")
}

# Reads what the load program says until a line begins with this; fails when it ends before.
heard() {
    while IFS= read -r line <&"$load_out"; do
        echo "$line" >&2
        [[ $line != "$1"* ]] || return 0
    done
    echo "The load program has ended." >&2
    return 1
}

tell() {
    echo "$*" >&"$load_in"
    heard "done $*"
}

end_load() {
    exec {load_in}>&-
    wait "$load_pid"
    exec {load_out}<&-
}
