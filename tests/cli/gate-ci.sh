# SPDX-License-Identifier: Apache-2.0
# The CI templates: their steps run here as a runner would run them, with the outcome they promise.
mkdir bin && ln -s "$ASSAY" bin/assay
export PATH=$PWD/bin:$PATH GITHUB_STEP_SUMMARY=$PWD/summary.md
python3 - "$ROOT" <<'PYTHON'
import sys, textwrap
def block(path, key):
    """The literal block that follows a key, without its indentation."""
    lines = open(path).read().split("\n")
    at = next(i for i, line in enumerate(lines) if line.strip() == key)
    indent = len(lines[at]) - len(lines[at].lstrip())
    body = []
    for line in lines[at + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line)
    return textwrap.dedent("\n".join(body))
open("github.sh", "w").write(block(sys.argv[1] + "/packaging/ci/action.yml", "run: |"))
open("gitlab.sh", "w").write(block(sys.argv[1] + "/packaging/ci/gitlab.yml", "- |"))
PYTHON
for name in base slow; do
    for letter in a b c d e f g h i j k l m n o p q r s t; do
        echo "main;$letter 5000"
    done >$name.folded
done
sed -i 's/;b 5000/;b 9000/' slow.folded
for steps in github gitlab; do
    for new in base slow missing; do
        code=0
        GATE_BASE=base.folded GATE_NEW=$new.folded GATE_ARGUMENTS="--min-share 2%" \
            bash -eo pipefail $steps.sh >output 2>&1 || code=$?
        echo "$steps $new: exit $code"
    done
done
grep -c '^### ' summary.md
ls gate.html gate.xml
