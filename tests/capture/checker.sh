# SPDX-License-Identifier: Apache-2.0
# The checker itself: what is right passes, and each way to be wrong is found.
. "$ROOT/tests/capture/common.bash"
need python3

cat >expected <<'END'
    plain 10 main a b leaf
    recursion 10+ main r{3} leaf
    also main ...
END
good='_start;main;a;b;leaf 50
_start;main;a;b 1
_start;main;r;r;r;leaf 20
_start;main;r;r 2'

# says STATUS WORDS STACKS: the checker ends so and, if it complains, with such words.
says() {
    local status=0
    printf '%s\n' "$3" >stacks.folded
    "$ASSAY" convert stacks.folded -o stacks.pb.gz
    chains stacks.pb.gz "" <expected >found || status=$?
    if [ "$status" -eq "$1" ] && [[ $(cat found) == *$2* ]]; then
        pass "$2"
    else
        cat found
        fail "$2"
    fi
}
says 0 '73 samples, 100.00% whole; plain 50, recursion 20' "$good"
says 1 'cannot be: _start@ > main@ > a@ > leaf@' "$good"$'\n_start;main;a;leaf 1'
says 1 'cannot be: _start@ > main@ > b@ > a@ > leaf@' "$good"$'\n_start;main;b;a;leaf 1'
says 1 'cannot be: _start@ > main@ > a@ > x@ > b@ > leaf@' "$good"$'\n_start;main;a;x;b;leaf 1'
says 1 'cannot be: _start@ > main@ > r@ > r@ > r@ > r@ > leaf@' "$good"$'\n_start;main;r;r;r;r;leaf 1'
says 1 'cannot be: _start@ > main@ > r@ > r@ > r@ > r@' "$good"$'\n_start;main;r;r;r;r 1'
says 1 'cannot be: main@ > a@ > b@ > leaf@' "$good"$'\nmain;a;b;leaf 1'
says 1 '50.00% of 146 stacks are cut' "$good"$'\n[unknown];a;b;leaf 73'
says 1 'plain: 0 samples have the whole chain where at least 10' '_start;main;r;r;r;leaf 20'
says 1 'plain: only 50 of 60 samples reach the leaf' "$good"$'\n_start;main;a 9'
