# SPDX-License-Identifier: Apache-2.0
# The stacks of threads that wait in known places, compared with faulthandler's word for them and,
# where it is here, py-spy's: function, file and line of every frame.
. "$ROOT/tests/capture/common.bash"
need python3

compared=0
while read -r version program; do
    minor=${version#python3.}
    minor=${minor%%.*}
    [[ $version == python3.* && $minor -ge 8 && $minor -le 14 ]] || continue
    mkfifo ask
    "$program" "$subjects/known_stacks.py" dump.txt <ask >answers &
    pid=$!
    started+=("$pid")
    exec 9>ask
    if ! wait_until 20 grep ready answers; then
        fail "$version: the program does not start"
        continue
    fi
    "$ASSAY" stacks -f json -p "$pid" >stacks.json 2>said || { cat said && fail "$version: stacks"; }
    echo >&9
    wait_until 20 grep written answers
    check "$version: faulthandler says the same" \
        python3 "$capture/python_frames.py" faulthandler stacks.json dump.txt
    if command -v py-spy >/dev/null; then
        if py-spy dump --json --pid "$pid" >spy.json 2>spy.said; then
            check "$version: py-spy says the same" \
                python3 "$capture/python_frames.py" py-spy stacks.json spy.json
        else
            skip_case "$version: py-spy" "$(tail -1 spy.said)"
        fi
    else
        skip_case "$version: py-spy" "There is no py-spy here."
    fi
    exec 9>&-
    end_process "$pid"
    rm -f ask answers
    compared=$((compared + 1))
done < <(bash "$ROOT/tests/toolchains.sh" python3)
[ "$compared" -gt 0 ] || skip_all "There is no Python from 3.8 to 3.14 here."
