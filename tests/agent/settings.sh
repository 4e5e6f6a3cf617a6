# SPDX-License-Identifier: Apache-2.0
# Settings: the example is good, mistakes are found all at once, and what is missing is said.
"$ASSAY" agent --check-config --config "$ROOT/docs/agent.example.yaml"
printf 'rate: 5000\nrulez: []\nrules: [{labels: {a: b}}]\n' >wrong.yaml
if "$ASSAY" agent --check-config --config wrong.yaml 2>wrong.txt; then exit 1; fi
[ "$(grep -c '^wrong.yaml:' wrong.txt)" -eq 3 ]
grep 'rules' wrong.txt >/dev/null
if "$ASSAY" agent --data . 2>none.txt; then exit 1; fi
grep -e '--server' none.txt >/dev/null
if "$ASSAY" agent status --data . 2>none.txt; then exit 1; fi
grep 'No agent is listening at unix:./agent.sock' none.txt >/dev/null
if "$ASSAY" agent nonsense 2>none.txt; then exit 1; fi
if "$ASSAY" agent --server ftp://x --data . 2>none.txt; then exit 1; fi
grep 'http:// or https://' none.txt >/dev/null
# What is too much is said, not left out.
python3 -c 'print("select:")
for i in range(1001): print(f"  - {{name: n{i}}}")' >many.yaml
if "$ASSAY" agent --check-config --config many.yaml 2>many.txt; then exit 1; fi
grep 'more than 1000 entries' many.txt >/dev/null
