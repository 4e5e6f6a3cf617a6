# SPDX-License-Identifier: Apache-2.0
# The gate on a real service, recorded in turns, with the default limits: a function that is 20%
# slower fails it; a noisy neighbour, twice the traffic and half of it pass it. Shares are those of
# the handler: what the service spends on waking up and on the network is not proportional to its
# traffic.
# Chance: each gate fails in up to 5% of runs without a cause.
. "$ROOT/tests/capture/common.bash"
need go curl python3
turns=${COMPARE_TURNS:-8} seconds=${COMPARE_SECONDS:-20}

export GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0
if ! (cd "$ROOT/tests/long/shop" && go build -trimpath -o "$OLDPWD/shop" .) 2>said; then
    skip_all "Go cannot build here: $(tail -n 1 said)"
fi

# record_one NAME ROUNDS RATE NEIGHBOURS: adds NAME.TURN.otlp and its number of requests.
record_one() {
    local name=$1 address before after pids=()
    ./shop serve "$2" >address &
    local service=$!
    started+=("$service")
    until [ -s address ]; do sleep 0.05; done
    read -r address <address
    ./shop load "$address" "$3" $((seconds + 60)) &
    pids+=($!)
    for _ in $(seq "$4"); do
        (while :; do :; done) &
        pids+=($!)
    done
    started+=("${pids[@]}")
    until [ "$(curl -s "http://$address/served")" -gt "$3" ]; do sleep 0.1; done
    before=$(curl -s "http://$address/served")
    "$ASSAY" record -q -F 997 -p "$service" -d "$seconds" -o "$name.$turn.otlp"
    after=$(curl -s "http://$address/served")
    echo $((after - before)) >>"$name.requests"
    kill "${pids[@]}" "$service"
    wait "${pids[@]}" "$service" 2>/dev/null || true
    started=()
    rm address
}

# gate NAME OPTION...: the exit code.
gate() {
    local name=$1 code=0 turn options=()
    shift
    for turn in $(seq "$turns"); do
        options+=(--base "base.$turn.otlp" --new "$name.$turn.otlp")
    done
    "$ASSAY" gate "${options[@]}" "$@" >"$name.txt" 2>&1 || code=$?
    echo "$code"
}
expect() { # WHAT CODE GOT FILE
    if [ "$2" = "$3" ]; then pass "$1"; else
        fail "$1: exit code $3"
        cut -c1-160 "$4" | head -n 6
    fi
}
requests() { awk '{ sum += $1 } END { print sum }' "$1.requests"; }

# $COMPARE_RECORDINGS: a directory with those of a run before, to judge them again.
if [ -n "${COMPARE_RECORDINGS:-}" ]; then
    cp "$COMPARE_RECORDINGS"/*.otlp "$COMPARE_RECORDINGS"/*.requests .
else
    for turn in $(seq "$turns"); do
        record_one base 10 1000 0
        record_one same 10 1000 0
        record_one slow 12 1000 0
        record_one neighbour 10 1000 "$(nproc)"
        record_one double 10 2000 0
        record_one half 10 500 0
    done
fi

# Shares below the handler, by the default limits (5%), and by a budget of the function.
handler=(--normalize total --focus '^main\.handle$')
cat >budget.yaml <<'YAML'
budgets:
  - name: scoring
    function: ^main\.score$
    max_growth: 5%
YAML
expect "a function that is 20% slower" 3 "$(gate slow "${handler[@]}")" slow.txt
if grep 'changed by' slow.txt | grep -v '^passed' | grep -vq ' main\.score: '; then
    fail "only that function"
    cat slow.txt
fi
expect "a budget of the function, 20% slower" 3 "$(gate slow "${handler[@]}" --budget budget.yaml)" slow.txt
for name in same neighbour double half; do
    expect "$name, a budget of the function" 0 \
        "$(gate "$name" "${handler[@]}" --budget budget.yaml)" "$name.txt"
done

# All functions, and costs per request, where a quiet service's wake-ups and a starved machine count:
# more of the same traffic must not fail. A busy machine may leave a gate undecided.
not_failed() { # WHAT CODE FILE
    if [ "$2" = 4 ] && grep -q 'too much noise\|would settle it' "$3"; then
        skip_case "$1" "undecided: $(sed -n '1s/^undecided *//p' "$3")"
    else
        expect "$1" 0 "$2" "$3"
    fi
}
for name in same neighbour double half; do
    not_failed "$name, all functions" "$(gate "$name" "${handler[@]}")" "$name.txt"
done
for name in same double; do
    not_failed "$name, per request" "$(gate "$name" --base-requests "$(requests base)" \
        --new-requests "$(requests "$name")")" "$name.txt"
done
