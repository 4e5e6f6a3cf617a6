#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A method begins where it is defined, not where its class declares it; a lambda is called after the
# whole name of the function that it is in.

for tool in c++ nm; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here."
        exit 77
    }
done
cat >small.cc <<'CC'
struct Counter {
    int add(int n);
    int by_lambda(int n);
    int total = 0;
};
int Counter::add(int n)
{
    total += n;
    return total;
}
volatile int sink;
int Counter::by_lambda(int n)
{
    auto each = [&](auto step) __attribute__((noinline)) { sink = step; return sink + total; };
    return each(n) + each(n + 1);
}
int main(int argc, char **)
{
    Counter counter;
    return counter.add(argc) + counter.by_lambda(argc);
}
CC
c++ -g -O1 -o small small.cc
frames() { # MANGLED-NAME
    nm small | sed -n "s/ [tTwW] $1\$//p" | "$DUMP_SYMBOLS" --frames small 2>/dev/null
}
add=$(frames _ZN7Counter3addEi)
echo "$add"
[[ $add == *"Counter::add"$'\t'"_ZN7Counter3addEi"$'\t6\t'*small.cc:* ]]
lambda=$(frames '_ZZN7Counter9by_lambda.*')
echo "$lambda"
[[ $lambda == *Counter::by_lambda*lambda*small.cc:14* ]]
