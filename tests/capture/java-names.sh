# SPDX-License-Identifier: Apache-2.0
# Java frames of threads that wait, as `assay stacks` and jstack have them: the same methods, files
# and lines, in the same order.
. "$ROOT/tests/capture/common.bash"
need python3 java javac
javac -nowarn -d . -source 8 -target 8 "$subjects/JavaDump.java" 2>/dev/null ||
    skip_all "javac cannot compile for Java 8."

tested=0
while read -r version program; do
    jstack=$(dirname "$(readlink -f "$program")")/jstack
    [ -x "$jstack" ] || continue
    tested=$((tested + 1))
    for how in "" -Xint; do
        # shellcheck disable=SC2086 # no flag is no word
        "$program" $how -cp . JavaDump >ready &
        started+=($!)
        for _ in $(seq 1200); do
            grep ready ready >/dev/null && break
            sleep 0.1
        done
        "$jstack" "${started[-1]}" >theirs.txt
        if ! "$ASSAY" stacks -f json -p "${started[-1]}" >ours.json 2>said; then
            grep -E 'Permission|permitted|ptrace' said >/dev/null && skip_all "$(cat said)"
        fi
        end_process "${started[-1]}"
        check "$version ${how:-as it comes}: like jstack" \
            python3 "$capture/java_frames.py" jstack ours.json theirs.txt
    done
done < <(bash "$ROOT/tests/toolchains.sh" java)
[ "$tested" -gt 0 ] || skip_all "There is no jstack here."
