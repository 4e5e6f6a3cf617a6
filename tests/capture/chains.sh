# SPDX-License-Identifier: Apache-2.0
# Programs whose every call is known, built without frame pointers and in every way of linking: each
# chain must be there whole, from the first frame to the leaf, and nothing else may be.
. "$ROOT/tests/capture/common.bash"
need gcc python3

flags=(-O2 -fomit-frame-pointer -Wall -Wextra)
gcc "${flags[@]}" -shared -fPIC -o libplugin.so "$subjects/plugin.c"
gcc "${flags[@]}" -fno-builtin -shared -fPIC -Wl,-z,lazy -o liblazy.so "$subjects/lazy.c"

cat >expected <<'END'
    also main ...
    also main run ...
    plain 60 main run plain_a plain_b plain_c plain_d plain_leaf
    recursion 60 main run recurse_200 recurse{200} recurse_leaf
    alloca 15 main run variable with_alloca alloca_leaf
    vla 15 main run variable with_vla vla_leaf
    aligned 6 main run aligned aligned_local aligned_leaf
    aligned-and-alloca 6 main run aligned aligned_both aligned_leaf
    aligned-by-force 6 main run aligned aligned_forced aligned_leaf
    tail-call 60 main run tail tail_leaf
    jump 50 main run jump jump_inner jump_leaf
    also main run jump ...
    also main run jump jump_inner jump_leaf ...
    compare 60 main run sort sort_all @libc\..* compare compare_leaf
    vdso 10+ main run vdso vdso_loop @libc\..* @\[vdso\]
    also main run vdso vdso_loop ...
    jit 15+ main run jit \[.*\]\+0x\w+@\[(anonymous|jit).*
    jit-callback 15 main run jit \[.*\]\+0x\w+@\[(anonymous|jit).* jit_callback
    also main run jit ...
    coroutine 60 coroutine_body coroutine_leaf
    also coroutine_body ...
    also main run coroutine ...
    signal 3+ main run signals with_signals interrupted interrupted_leaf .*@libc\..* handler handler_leaf
    also main run signals with_signals interrupted .*@libc\..* handler handler_leaf
    also main run signals with_signals .*@libc\..* handler handler_leaf
    also main run signals with_signals .*@libc\..* .*@libc\..* handler handler_leaf
    also main run signals with_signals ...
    also main run signals ...
END
cat >expected-plugins <<'END'
    plugin 15 main run plugin plugin_entry@libplugin.so plugin_inner@libplugin.so plugin_leaf@libplugin.so
    plugin-callback 15 main run plugin plugin_entry@libplugin.so plugin_inner@libplugin.so plugin_callback
    also main run plugin ...
    lazy 2+ main run lazy lazy_calls@liblazy.so @ld-.*
    also main run lazy lazy_calls@liblazy.so ...
    also main run lazy ...
END
# More of the stack than a sampler that copies it takes along.
cat >expected-deep <<'END'
    also main ...
    also main run ...
    plain 60 main run plain_a plain_b plain_c plain_d plain_leaf
    recursion 60 main run recurse_900 recurse{900} recurse_leaf
    huge 60 main run huge huge_frame huge_leaf
    signal-apart 3+ main run signals_apart with_signals interrupted interrupted_leaf .*@libc\..* handler handler_leaf
    also main run signals_apart with_signals interrupted .*@libc\..* handler handler_leaf
    also main run signals_apart with_signals .*@libc\..* handler handler_leaf
    also main run signals_apart with_signals .*@libc\..* .*@libc\..* handler handler_leaf
    also main run signals_apart with_signals ...
    also main run signals_apart ...
END

sections=(plain recurse_200 variable aligned tail jump sort vdso jit coroutine signals signals)
declare -A builds=(
    [dynamic]="gcc -fomit-frame-pointer -ldl"
    [static]="gcc -fomit-frame-pointer -static -DNO_PLUGINS"
    [static-pie]="gcc -fomit-frame-pointer -static-pie -DNO_PLUGINS"
    [frame-pointers]="gcc -fno-omit-frame-pointer -fcf-protection -ldl"
    [clang]="clang -fomit-frame-pointer -ldl"
)
for name in dynamic static static-pie frame-pointers clang; do
    # shellcheck disable=SC2206 # several words each
    build=(${builds[$name]})
    if ! command -v "${build[0]}" >/dev/null; then
        skip_case "$name" "there is no ${build[0]} here"
        continue
    fi
    if ! "${build[0]}" -O2 -o "$name" "$subjects/chains.c" "${build[@]:1}" 2>said; then
        skip_case "$name" "it cannot be built here: $(sed -n 1p said)"
        continue
    fi
    own=() run=("${sections[@]}")
    cp expected "expected-$name"
    if [[ $name == static* ]]; then
        # Another build of the same has the names that are its own.
        nm dynamic | awk '$2 == "T" || $2 == "t" { print $3 }' >own
        own=(--own own)
    else
        cat expected-plugins >>"expected-$name"
        run+=(plugin lazy lazy lazy)
    fi
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        at_rate 80
        "$ASSAY" record -q -F "$rate" -o all.pb.gz -- "./$name" "$amount" "${run[@]}"
        check "$name ($ASSAY_SAMPLER)" chains all.pb.gz "$name" "${own[@]}" <"expected-$name"
        # Stacks are copied, and cut, until the kernel has what it needs to walk them itself.
        [ "$ASSAY_SAMPLER" = bpf ] || [ "$name" = dynamic ] || continue # they differ in what was built
        "$ASSAY" record -q -F "$rate" -o deep.pb.gz -- "./$name" "$amount" \
            plain plain recurse_900 huge signals_apart signals_apart
        cut=()
        [ "$ASSAY_SAMPLER" = bpf ] || cut=(--truncated)
        check "$name, deep ($ASSAY_SAMPLER)" \
            chains deep.pb.gz "$name" "${own[@]}" "${cut[@]}" <expected-deep
    done
done
