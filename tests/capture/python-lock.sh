# SPDX-License-Identifier: Apache-2.0
# Who holds Python's global interpreter lock, with every interpreter that is here: one thread of
# three, for ever.
. "$ROOT/tests/capture/common.bash"
need python3 jq

tested=0
while read -r version program; do
    minor=${version#python3.}
    minor=${minor%%.*}
    [[ $version == python3.* && $minor -ge 8 && $minor -le 14 ]] || continue
    mkfifo ask
    "$program" "$subjects/python_lock.py" <ask >holder &
    pid=$!
    started+=("$pid")
    exec 9>ask
    if wait_until 20 grep -q . holder; then
        # It has written its number, and may not hold the lock again yet.
        holders() { "$ASSAY" stacks -f json -p "$pid" 2>said | jq -c '[.threads[] | select(.holds_gil) | .tid]'; }
        held() { [ "$(holders)" = "[$(cat holder)]" ]; }
        check "$version: one thread holds the lock" wait_until 20 held
        "$ASSAY" stacks -p "$pid" 2>said | grep 'holds the GIL' >text || true
        check "$version: and is the one in the text" grep -q "^thread $(cat holder) .*, holds the GIL" text
        check "$version: alone" test "$(wc -l <text)" = 1
    else
        fail "$version: the program does not start"
    fi
    exec 9>&-
    end_process "$pid"
    rm -f ask holder
    tested=$((tested + 1))
done < <(bash "$ROOT/tests/toolchains.sh" python3)
[ "$tested" -gt 0 ] || skip_all "There is no Python from 3.8 to 3.14 here."
