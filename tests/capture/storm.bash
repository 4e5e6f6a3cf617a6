# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Storms of short processes, of code that comes and goes at one address, and of programs in each
# other's place. Sourced by tests/capture/storm-*.sh and, for longer, by tests/long/storm-*.sh.

# storm_record OUT COMMAND...: records a command, and says in `peak` and `said` what that took.
storm_record() {
    local out=$1 recorder now
    shift
    "$ASSAY" record -F 999 -o "$out" -- "$@" >command.said 2>said &
    recorder=$!
    peak=0
    while kill -0 "$recorder" 2>/dev/null; do
        now=$(peak_kib "$recorder")
        [ "${now:-0}" -le "$peak" ] || peak=$now
        sleep 0.05
    done
    if ! wait "$recorder"; then
        cat said command.said
        fail "$out could not be recorded ($ASSAY_SAMPLER)"
        return 1
    fi
    sed 's/^/# /' said
    echo "# the recorder's memory was at most $peak KiB"
}

# What was lost is said, and memory has a bound: storm_bounds NAME KIB.
storm_bounds() {
    if [[ $(cat said) =~ ,\ [0-9]+\ lost, ]]; then
        pass "$1 says what was lost ($ASSAY_SAMPLER)"
    else
        cat said
        fail "$1 says what was lost ($ASSAY_SAMPLER)"
    fi
    if [ "$peak" -gt 0 ] && [ "$peak" -lt "$2" ]; then
        pass "$1 in bounded memory ($ASSAY_SAMPLER)"
    else
        fail "$1: the recorder took $peak KiB where $2 are allowed ($ASSAY_SAMPLER)"
    fi
}

order_flags=(-O2 -fomit-frame-pointer -Wall -Wextra -fno-ipa-icf -fno-reorder-functions -fno-toplevel-reorder)

# storm_swap ROUNDS
storm_swap() {
    local number letters=(_ a b)
    for number in 1 2; do
        gcc "${order_flags[@]}" -DLETTER="${letters[number]}" -DLETTER_NUMBER=$number \
            -shared -fPIC -o "lib${letters[number]}.so" "$subjects/ordered.c"
    done
    gcc -O2 -fomit-frame-pointer -Wall -Wextra -o swap "$subjects/swap.c" -ldl
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        storm_record swap.pb.gz ./swap "$1" || continue
        echo "# $(cat command.said) of $1 times at the same address"
        [ "$(cat command.said)" -gt 0 ] || skip_case "plugins ($ASSAY_SAMPLER)" "never at the same address"
        # In the kernel a walk by mappings that are no more is thrown away: little remains, all right.
        least=50 cut=1
        [ "$ASSAY_SAMPLER" != bpf ] || least=2 cut=100
        check "plugins at one address ($ASSAY_SAMPLER)" \
            chains swap.pb.gz swap --cut-percent "$cut" <<END
            also main ...
            also main use ...
            a $least main use call_a a_start@liba.so a_first@liba.so a_second@liba.so a_third@liba.so a_leaf@liba.so
            b $least main use call_b b_start@libb.so b_third@libb.so b_second@libb.so b_first@libb.so b_leaf@libb.so
END
        storm_bounds swap "$storm_kib"
    done
}

# storm_exec ROUNDS
storm_exec() {
    local number letters=(_ a b)
    for number in 1 2; do
        gcc "${order_flags[@]}" -DLETTER="${letters[number]}" -DLETTER_NUMBER=$number \
            -static -no-pie -o "exec-${letters[number]}" "$subjects/exec.c" 2>said ||
            { skip_case exec "no static program can be built here" && return 0; }
    done
    nm exec-a exec-b | awk '$2 == "T" && ($3 ~ /^[ab]_/ || $3 == "main") { print $3 }' | sort -u >own
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        storm_record exec.pb.gz ./exec-a "$1" || continue
        for letter in a b; do
            order=(first second third)
            [ "$letter" = a ] || order=(third second first)
            # Under its own name each program has its own chain, and in its own file.
            check "exec-$letter ($ASSAY_SAMPLER)" chains exec.pb.gz "exec-$letter" --own own \
                --comm "exec-$letter" --cut-percent 15 <<END
                also main ...
                $letter 50 main ${letter}_start ${letter}_${order[0]} ${letter}_${order[1]} ${letter}_${order[2]} ${letter}_leaf
END
        done
        storm_bounds exec "$storm_kib"
    done
}

# storm_spawn PER-SECOND SECONDS
storm_spawn() {
    gcc -O2 -fomit-frame-pointer -Wall -Wextra -pthread -o storm "$subjects/storm.c"
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        storm_record spawn.pb.gz ./storm spawn "$1" "$2" || continue
        check "no stack of two programs ($ASSAY_SAMPLER)" \
            python3 "$capture/storm.py" spawn.pb.gz storm "$(basename "$(readlink -f /bin/sh)")"
        storm_time spawn
        storm_bounds spawn "$storm_kib"
    done
}

# storm_tree PROCESSES ALIVE
storm_tree() {
    gcc -O2 -fomit-frame-pointer -Wall -Wextra -pthread -o storm "$subjects/storm.c"
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        storm_record tree.pb.gz ./storm tree "$1" "$2" || continue
        # However the processes came to be, a stack grows by one call from parent to child. What the
        # ring had no room for, of a user without privilege half a megabyte, may have been where a
        # process has its code: such a recording says so, and its stacks may be cut.
        local cut=1
        ! grep 'records lost: the ring buffer was full' said >/dev/null || cut=100
        check "processes ($ASSAY_SAMPLER)" chains --cut-percent "$cut" tree.pb.gz storm <<'END'
            also main tree{*} ...
            leaf 50+ main tree{*} grow{+} tree_leaf
            also main tree{*} grow{+} ...
END
        storm_time tree
        storm_bounds tree "$storm_kib"
    done
}

# storm_threads COUNT
storm_threads() {
    gcc -O2 -fomit-frame-pointer -Wall -Wextra -pthread -o storm "$subjects/storm.c"
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        storm_record threads.pb.gz ./storm threads "$1" || continue
        check "threads ($ASSAY_SAMPLER)" chains threads.pb.gz storm <<END
            leaf ${threads_least[$ASSAY_SAMPLER]} short_thread short_leaf
            also short_thread ...
            also main start_threads ...
            also main ...
END
        storm_time threads
        storm_bounds threads "$storm_kib"
    done
}

# The time of processes that live for less than a period between two samples counts, too. Where each
# process has a timer of its own, as with perf events, most of it is never seen.
storm_time() {
    if [ "$ASSAY_SAMPLER" = bpf ]; then
        check "$1: all of the time ($ASSAY_SAMPLER)" \
            python3 "$capture/shares.py" --total "$1.pb.gz" 15 <command.said
    else
        python3 "$capture/shares.py" --total "$1.pb.gz" 15 <command.said | sed 's/^/# /' || true
    fi
}
