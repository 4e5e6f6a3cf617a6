# SPDX-License-Identifier: Apache-2.0
# C++: exceptions on their way through 20 frames and two cleanups, virtual calls, a comparator deep in
# std::sort, a lambda in a std::function, constructors before main, a std::thread.
. "$ROOT/tests/capture/common.bash"
need g++ python3

g++ -O2 -fomit-frame-pointer -Wall -Wextra -pthread -o cplusplus "$subjects/cplusplus.cc"
cat >expected <<'END'
    also main ...
    also main run ...
    throw 10+ main run catcher depth{20} middle thrower
    in-flight 10+ main run catcher depth{20} middle thrower @lib(stdc|gcc).*
    also main run catcher depth{20} middle thrower ...
    also main run catcher depth{20} middle (Cleanup::)?~Cleanup
    also main run catcher depth{20} middle middle.*cold.* ...
    also main run catcher depth{20} middle ...
    # An exception leaves frames one by one: each is the innermost for a moment.
    also main run catcher depth{+} .*{*} ...
    # While it lands in a frame, what was saved there is written over.
    also (catcher|depth|middle|thrower) @libgcc.* ...
    caught 20 main run catcher caught_leaf
    also main run catcher ...
    virtual 60 main run drawing Square::draw Circle::draw Circle::fill
    compare 30+ main run sorting before order_leaf
    introsort 10+ main run sorting std::__introsort_loop<.* before order_leaf
    also main run sorting std::__\w+<.* before order_leaf
    also main run sorting std::__\w+<.*{2} before order_leaf
    also main run sorting std::__\w+<.*{3} before order_leaf
    also main run sorting std::__\w+<.*{4} before order_leaf
    also main run sorting std::__\w+<.*{5} before order_leaf
    also main run sorting ...
    lambda 60 main run functional templated<.*> std::_Function_handler<.* templated_leaf<.*>
    # The compiler may jump to the only constructor there is.
    early 50+ Early::Early early_leaf
    also Early::Early early_leaf ...
    also _GLOBAL__sub_I.* ...
    thread 60+ @libstdc.* thread_body thread_leaf
    also @libstdc.* thread_body ...
    also @libstdc.* ...
END
for ASSAY_SAMPLER in "${samplers[@]}"; do
    at_rate 150
    "$ASSAY" record -q -F "$rate" -o cplusplus.pb.gz -- ./cplusplus "$amount"
    check "C++ ($ASSAY_SAMPLER)" chains cplusplus.pb.gz cplusplus <expected
done
