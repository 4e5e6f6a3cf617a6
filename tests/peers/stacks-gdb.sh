#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stacks that `assay stacks` shows against gdb's, frame for frame: the same program, stopped, so
# that both see the same.
for tool in gdb nm gcc; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to compare with."
        exit 77
    }
done

# The program of the other test, without a second copy.
sed -n "/^cat >known.c/,/^END$/{//!p}" "$ROOT/tests/cli/stacks.sh" >known.c
for flags in "-O2 -fomit-frame-pointer" "-O0 -fno-omit-frame-pointer" "-O2 -static"; do
    # shellcheck disable=SC2086
    gcc $flags -pthread -o known known.c
    ./known &
    known=$!
    trap 'kill -9 $known 2>/dev/null || true' EXIT
    for _ in $(seq 500); do
        [ "$(cat "/proc/$known"/task/*/stat | sed 's/.*) \(.\).*/\1/' | tr -d '\n')" != SSRS ] || break
        sleep 0.02
    done
    kill -STOP "$known"
    status=0
    "$ASSAY" stacks -p "$known" -f json >stacks.json 2>said || status=$?
    if [ "$status" -ne 0 ]; then
        cat said
        grep -qE 'ptrace_scope|SYS_PTRACE' said && exit 77
        exit 1
    fi
    cat "/proc/$known/maps" >maps.txt
    # Without DWARF: inlined calls have no frame of their own here.
    gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set debug-file-directory /nowhere' \
        -p "$known" -ex 'set width 0' -ex 'set backtrace past-main on' \
        -ex 'set backtrace past-entry on' -ex 'thread apply all bt' >gdb.txt 2>gdb.err || {
        echo "gdb cannot attach: $(tail -1 gdb.err)"
        exit 77
    }
    kill -9 "$known"
    wait "$known" || true
    python3 "$ROOT/tests/peers/compare_stacks.py" stacks.json gdb.txt maps.txt
done
