# SPDX-License-Identifier: Apache-2.0
# The tutorial of the gate, step by step: its files are written, its commands run, and the gates end
# as it says.
# Chance: the gates judge samples of a program on a machine that others use.
. "$ROOT/tests/capture/common.bash"
need cc python3

python3 - "$ROOT/docs/gate-tutorial.md" <<'PYTHON'
import re, sys
text = open(sys.argv[1]).read()
blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
open("bench.c", "w").write(next(body for kind, body in blocks if kind == "c"))
open("budget.yaml", "w").write(next(body for kind, body in blocks if body.startswith("budgets:")))
for number, body in enumerate(body for kind, body in blocks if kind == "sh"):
    open(f"step{number}", "w").write(body)
PYTHON
mkdir bin && ln -s "$ASSAY" bin/assay
export PATH=$PWD/bin:$PATH
"$ASSAY" server --listen 127.0.0.1:0 --data data 2>log &
started+=($!)
until url=$(grep -om1 'http://127.0.0.1:[0-9]*' log); do sleep 0.05; done
sed -i "s|http://127.0.0.1:4040|$url|" step*

run() { bash -eo pipefail "step$1" >"output$1" 2>&1; }
if run 0; then pass "the good state"; else fail "the good state: $(tail -n 2 output0)"; fi
code=0
run 1 || code=$?
# A starved machine may be too noisy to decide.
if [ "$code" = 0 ] || [ "$code" = 4 ]; then pass "a gate that passes"; else fail "a gate that passes: $(tail -n 3 output1)"; fi
for step in 2 3; do
    run "$step"
    if grep -q '^exit status 3$' "output$step" && grep -q '^failed *score: ' "output$step"; then
        pass "step $step fails"
    elif grep -q '^exit status 4$' "output$step" && grep -q 'too much noise\|would settle it' "output$step"; then
        skip_case "step $step" "the machine is too busy: $(tail -n 2 "output$step" | head -n 1)"
    else
        fail "step $step fails: $(tail -n 3 "output$step")"
    fi
done
if grep '^failed' output2 | grep -v ' score: '; then fail "another function is blamed"; fi
[ -s gate.html ] || fail "the page of the gate"
code=0
run 4 || code=$?
if grep -q '^Saved main' output4 && { [ "$code" = 0 ] || [ "$code" = 4 ]; }; then pass "a baseline"; else fail "a baseline: $(tail -n 3 output4)"; fi
[ ! -e step5 ] || fail "the tutorial has a step that is not tested"
