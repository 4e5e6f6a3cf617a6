# SPDX-License-Identifier: Apache-2.0
# Sampled events: sums agree with what the kernel counted for the program, and functions have their
# shares of them.
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O1 -g -o faults "$subjects/faults.c"

# agrees FILE TYPE COUNT TOLERANCE [FUNCTION PERCENT]...: within as many percent, and points.
agrees() {
    "$ASSAY" report -n 0 --cum -t "$2" --format json "$1" >report.json
    python3 - "${@:3}" <<'END'
import json, sys
count, tolerance, *shares = sys.argv[1:]
report = json.load(open("report.json"))
found, want = report["total"], int(count)
print(f"{found} of {want}")
assert abs(found - want) <= want * float(tolerance) / 100, "the sum is wrong"
rows = {row["function"]: row["cum_percent"] for row in report["rows"]}
for function, share in zip(shares[::2], shares[1::2]):
    print(function, rows.get(function))
    assert abs(rows.get(function, 0) - float(share)) <= 2, f"{function} is not {share}%"
END
}

for ASSAY_SAMPLER in "${samplers[@]}"; do
    # Switches happen in the kernel, and samples there take privileges.
    events=page-faults
    if [ "$(id -u)" -eq 0 ]; then events+=,cs; fi
    "$ASSAY" record -q -F 499 -e "$events" -o events.pb.gz -- ./faults >truth 2>said || {
        cat said
        fail "recording ($ASSAY_SAMPLER)"
        continue
    }
    read -r faults switches <truth
    # By perf events up to 255 of them come after the last sample of each CPU.
    case $ASSAY_SAMPLER in bpf) tolerance=0.2 ;; *) tolerance=2 ;; esac
    check "page faults ($ASSAY_SAMPLER)" agrees events.pb.gz page-faults "$faults" "$tolerance" \
        touch_much 75 touch_little 25
    if [ "$(id -u)" -eq 0 ]; then
        check "context switches ($ASSAY_SAMPLER)" agrees events.pb.gz context-switches "$switches" 5
    else
        skip_case "context switches ($ASSAY_SAMPLER)" "they can only be sampled as root."
    fi
    # Each of these processes has too few page faults for a sample of its own by perf events.
    "$ASSAY" record -e page-faults -o many.pb.gz -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do true | true; done' 2>said
    "$ASSAY" info many.pb.gz >info
    check "few in each process ($ASSAY_SAMPLER)" grep -qE 'page-faults/count: [1-9][0-9]{2}|[0-9] events not sampled' info said
    "$ASSAY" record -e cpu-clock,minor-faults:u -o clock.pb.gz -- ./faults >truth 2>said
    "$ASSAY" info clock.pb.gz >info
    check "with CPU time ($ASSAY_SAMPLER)" grep -qE 'minor-faults/count: [1-9]' info
    check "CPU time ($ASSAY_SAMPLER)" grep -qE 'cpu/nanoseconds: [1-9]' info
    # Not every machine has counters; one that doesn't says so, and has CPU time.
    "$ASSAY" record -e cycles,instructions -o cycles.pb.gz -- ./faults >truth 2>said
    "$ASSAY" info cycles.pb.gz >info
    cat info said
    if grep -q 'Not counted here: .*cycles' said; then
        check "no counters ($ASSAY_SAMPLER)" grep -q 'cpu/nanoseconds' info
        check "a reason ($ASSAY_SAMPLER)" grep -q 'Recording cpu-clock instead' said
    else
        check "counters ($ASSAY_SAMPLER)" grep -q 'cycles/count: [1-9]' info
        "$ASSAY" report cycles.pb.gz >said
        check "instructions per cycle ($ASSAY_SAMPLER)" grep -q ' ipc ' said
    fi
done

! ASSAY_SAMPLER=ptrace "$ASSAY" record -e page-faults -o none.pb.gz -- true 2>said
check "not by ptrace" grep -q "ptrace can't sample events" said
! "$ASSAY" record -e cycle -o none.pb.gz -- true 2>said
check "an unknown event" grep -q '"cycle" is not an event' said
