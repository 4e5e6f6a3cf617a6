# SPDX-License-Identifier: Apache-2.0
# `assay triage` names the true cause of known programs, and the function that holds their lock.
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O1 -g -pthread -o convoy "$subjects/convoy.c"

"$ASSAY" record -q -m wall,lock -o lock.pb.gz -- ./convoy lock 3
"$ASSAY" triage --json lock.pb.gz >lock.json
check "threads of a lock convoy wait for locks" python3 -c '
import json
d = json.load(open("lock.json"))
print(d)
assert d["verdict"] == "lock"
assert d["holder"] == "slow_update"
assert d["holder_ns"] > 0.8 * d["ns"]["lock"]
assert 0.8 * 9e9 < d["ns"]["lock"]'
"$ASSAY" triage lock.pb.gz >lock.txt
check "text names the holder" grep "The lock lock (.*) was held by slow_update" lock.txt
"$ASSAY" report lock.pb.gz >functions.txt
check "a lock that is a variable has its name" grep -F '[lock lock]' functions.txt
"$ASSAY" info lock.pb.gz >info.txt
check "totals say how exact they are" \
    grep -E 'wall time: lock [0-9.]+ s, standard error [0-9.]+ s, effective waits [0-9]' info.txt
"$ASSAY" triage --markdown lock.pb.gz >lock.md
check "Markdown has a heading" grep "^## Mostly waiting for locks" lock.md

# Nobody lets go: the mutex itself says who has it.
./convoy owner 60 &
started+=($!)
until [ "$(ls "/proc/$!/task" | wc -l)" -eq 6 ]; do sleep 0.05; done
"$ASSAY" triage -p "$!" -d 2 --json >owner.json
end_process "$!"
started=()
check "the owner of a lock that is never released" python3 -c '
import json
d = json.load(open("owner.json"))
print(d)
assert d["verdict"] == "lock"
assert d["holder"] == "keep_it" and d["lock"] == "lock"
assert "keep_it" in d["stack"] and "[lock lock]" in d["stack"]'

./convoy queue 60 &
started+=($!)
"$ASSAY" triage -p "$!" -d 3 --json -o queue.pb.gz >queue.json
end_process "$!"
started=()
# N threads on one CPU wait (N - 1) / N of the time; other processes may take more.
check "pinned threads wait for their CPU" python3 -c '
import json
d = json.load(open("queue.json"))
print(d)
assert d["verdict"] == "starved"
busy = d["ns"]["starved"] + d["ns"]["computing"]
assert d["ns"]["starved"] >= 0.74 * busy
assert busy > 0.98 * (d["busy_ns"] - d["ns"]["sleeping"])'

check "who had the CPU instead" python3 -c '
import json
d = json.load(open("queue.json"))
assert d["ran_instead"] and sum(e["ns"] for e in d["ran_instead"]) > 0.5 * d["ns"]["starved"], d'

"$ASSAY" record -q -o cpu.pb.gz -- ./convoy queue 1
if "$ASSAY" triage cpu.pb.gz >/dev/null 2>said; then status=0; else status=$?; fi
check "a profile without waits is refused" sh -c '[ "$1" -ne 0 ] && grep -q "mode wall,lock" said' sh "$status"
