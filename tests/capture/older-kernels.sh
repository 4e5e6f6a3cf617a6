# SPDX-License-Identifier: Apache-2.0
# As on kernels without bpf_loop, and without a hook behind context switches: the same stacks, and
# states of threads that are as exact.
# Chance: the time that threads wait for a CPU depends on what else runs.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

# The size of the sampling program, as the verifier has seen it: loops are followed turn by turn.
verified() {
    local fd
    for fd in "/proc/$1/fdinfo/"*; do
        if grep -qs '^prog_type:[[:space:]]*7$' "$fd"; then
            sed -n 's/^verified_insns:[[:space:]]*//p' "$fd"
            return
        fi
    done
}
gcc -O2 -pthread -o states "$subjects/states.c"
gcc -O2 -fomit-frame-pointer -o many "$subjects/shares.c"
for without in '' bpf_loop; do
    ASSAY_BPF_WITHOUT=$without "$ASSAY" record -q -d 60 -o size.pb.gz -- sleep 60 2>/dev/null &
    recorder=$!
    started+=("$recorder")
    tries=0
    until size=$(verified "$recorder") && [ -n "$size" ]; do [ $((tries += 1)) -lt 300 ]; sleep 0.1; done
    end_process "$recorder"
    echo "without '$without': $size instructions verified"
    [ -n "$without" ] || usual=$size
done
started=()
check "the plain loop is another program" [ "$usual" != "$size" ]

export ASSAY_BPF_WITHOUT=bpf_loop
ASSAY_CHECK_WALKS=1 "$ASSAY" record -F 499 -o many.pb.gz -- ./many 1 >/dev/null 2>said || cat said
check "walks are right without bpf_loop" grep -E '[1-9][0-9]* walks compared, 0 differ' said

export ASSAY_BPF_WITHOUT=sched_exit_tp,bpf_loop
"$ASSAY" record -q -m wall -o wall.pb.gz -- ./states 3 >truth
check "states, by the hook before the switch" python3 "$capture/states.py" wall.pb.gz <truth
"$ASSAY" info wall.pb.gz >info
check "the profile says how waits were chosen" grep 'chosen when the waits began' info

gcc -O1 -g -pthread -o convoy "$subjects/convoy.c"
"$ASSAY" record -q -m wall,lock -o lock.pb.gz -- ./convoy lock 3
"$ASSAY" triage --json lock.pb.gz >lock.json
check "the holder of a lock" python3 -c '
import json
d = json.load(open("lock.json"))
print(d)
assert d["verdict"] == "lock" and d["holder"] == "slow_update"
assert d["holder_ns"] > 0.8 * d["ns"]["lock"]'
