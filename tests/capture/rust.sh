# SPDX-License-Identifier: Apache-2.0
# Rust: a trait object, closures, a panic that unwinds through recursion and is caught, a thread.
. "$ROOT/tests/capture/common.bash"
need rustc python3

if ! rustc -O -C debuginfo=0 -o rust "$subjects/rust.rs" 2>said; then
    skip_all "rustc cannot build here: $(sed -n 1p said)"
fi
# The standard library's functions are in the program, and how many there are is its own business.
other='(?!rust::).*@.*{*}'
start="main $other rust::main rust::run"
cat >expected-thread <<END
    thread 60+ $other rust::threaded rust::work
    also $other rust::threaded $other ...
    also $other ...
END
cat >expected <<END
    also main $other ...
    also main $other rust::main $other ...
    also $start $other ...
    trait 60 $start $other rust::dynamic .*Circle.*draw rust::work
    closure 60 $start rust::closures rust::apply.* rust::closures::.*closure.* rust::work
    panic 10+ $start rust::panics $other rust::falls{11} rust::work
    also $start rust::panics $other rust::falls{11} $other ...
    also $start rust::panics $other ...
    # While an exception puts registers back, each frame that it leaves is the innermost for a moment.
    also $start rust::panics $other rust::falls{*} $other ...
    # The hook of panics.
    also $start rust::panics $other rust::falls{11} $other rust::main::.*closure.*
END
cat expected-thread >>expected
for ASSAY_SAMPLER in "${samplers[@]}"; do
    at_rate 12000
    "$ASSAY" record -q -F "$rate" -o rust.pb.gz -- ./rust "$amount" >/dev/null
    check "Rust ($ASSAY_SAMPLER)" chains rust.pb.gz rust <expected
    check "a thread by its name ($ASSAY_SAMPLER)" chains rust.pb.gz rust --comm rusty <expected-thread
done
