# SPDX-License-Identifier: Apache-2.0
# Chance: shares of a hundred samples are compared, within four standard deviations.
# JavaScript frames of threads that are stopped, with every version that is here: `assay stacks`
# beside what V8 says about the same stack, and recordings by ptrace.
export ASSAY_SAMPLERS=ptrace
. "$ROOT/tests/capture/common.bash"
need python3 node
export ASSAY_SAMPLER=ptrace

tested=0
while read -r version program; do
    major=${version#node}
    major=${major%%.*}
    [[ $version == node* && $major -ge 16 ]] || continue
    file=$(ldd "$program" 2>/dev/null | sed -n 's/.*libnode.* => \(.*\) (.*/\1/p')
    if ! grep -a v8dbg_class_JSFunction__shared "${file:-$(readlink -f "$program")}" >/dev/null; then
        skip_case "$version" "It has no constants for debuggers."
        continue
    fi
    tested=$((tested + 1))
    mkfifo ask
    "$program" "$subjects/node_stack.js" <ask >truth &
    pid=$!
    started+=("$pid")
    exec 9>ask
    if wait_until 60 grep -q ready truth; then
        waits() { "$ASSAY" stacks -f json "$pid" 2>said >stacks.json && grep -q readSync stacks.json; }
        check "$version: it waits" wait_until 20 waits
        check "$version: V8 says the same" python3 "$capture/node_frames.py" stack stacks.json truth
    else
        fail "$version: the program does not start"
    fi
    exec 9>&-
    end_process "$pid"
    rm -f ask
    "$ASSAY" record -q -o shares.pb.gz -- "$program" "$subjects/node_shares.js" 1 >truth
    check "$version: shares by ptrace" python3 "$capture/node_frames.py" few shares.pb.gz 20 <truth
done < <(bash "$ROOT/tests/toolchains.sh" node)
[ "$tested" -gt 0 ] || skip_all "There is no Node.js from 16 on with constants for debuggers here."
