# SPDX-License-Identifier: Apache-2.0
# Real recordings of programs, compared with themselves: 500 pairs of pieces of each kind raise an
# alarm in at most 5%. The programs run and are recorded at the same time: two processes with bursts,
# as two hosts; a steady one; a Python service; and a Go service with its clients.
# $COMPARE_RECORDINGS is a directory with the recordings of a run before.
# Chance: a rate of 5% exceeds the bound in one of 1,000 runs, and pieces are drawn more than once.
. "$ROOT/tests/capture/common.bash"
need cc go python3
seconds=${COMPARE_SECONDS:-900}

recorders=()
record_process() { # NAME PID
    "$ASSAY" record -q -F 1999 -p "$2" -d "$seconds" -o "$1.otlp" &
    recorders+=($!)
    started+=($!)
}
run() { # NAME PROGRAM...
    local name=$1
    shift
    "$@" >/dev/null &
    started+=($!)
    record_process "$name" $!
}
if [ -n "${COMPARE_RECORDINGS:-}" ]; then
    cp "$COMPARE_RECORDINGS"/*.otlp .
else
    cc -O1 -g -o bursts "$ROOT/tests/long/bursts.c"
    if ! (cd "$ROOT/tests/long/shop" && GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 go build -trimpath -o "$OLDPWD/shop" .) 2>said; then
        skip_all "Go cannot build here: $(tail -n 1 said)"
    fi
    run bursts.1 ./bursts $((seconds + 600)) 1
    run bursts.2 ./bursts $((seconds + 600)) 2
    run steady ./bursts $((seconds + 600)) 3 steady
    run python python3 "$ROOT/tests/long/batches.py" $((seconds + 600)) 4
    ./shop serve 10 >address &
    started+=($!)
    service=$!
    until [ -s address ]; do sleep 0.05; done
    ./shop load "$(cat address)" 300 $((seconds + 600)) &
    started+=($!)
    record_process go $service
    wait "${recorders[@]}"
fi
# Interrupts, and switches to other programs, are as many as these make of them. So pieces that are
# minutes apart compare without the kernel's part.
kernel='^(irqentry_exit_to_user_mode|asm_sysvec_.*|asm_exc_.*|handle_softirqs|__schedule|schedule|finish_task_switch.*|entry_SYSCALL.*|do_syscall_64|exit_to_user_mode_loop|task_work_run)'
for files in bursts.1.otlp:bursts.2.otlp steady.otlp python.otlp go.otlp; do
    for file in ${files//:/ }; do "$ASSAY" convert "$file" -o "user.$file" --ignore "$kernel"; done
    check "${files%%.*}" env COMPARE_RECORDINGS=$files COMPARE_APART=0 \
        COMPARE_PIECE_SECONDS=10 COMPARE_RUNS=500 "$TEST_COMPARE_RECORDINGS"
    for piece in 5 10 20; do
        check "${files%%.*} without the kernel, pieces of $piece s" env \
            COMPARE_RECORDINGS="user.${files//:/:user.}" \
            COMPARE_PIECE_SECONDS=$piece COMPARE_RUNS=500 "$TEST_COMPARE_RECORDINGS"
    done
done
