# SPDX-License-Identifier: Apache-2.0
# Go: goroutines with chains of their own, from where goroutines start to the leaf. What the runtime
# does by itself is its own business.
# Toolchains: go
. "$ROOT/tests/capture/common.bash"
need go python3

export GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0
work=$PWD
if ! (cd "$subjects/golang" && go build -trimpath -o "$work/golang" .) 2>said; then
    skip_all "Go cannot build here: $(tail -n 1 said)"
fi
other='(?!main\.).*{*}'
# What a `go` statement with arguments calls is the compiler's: gowrap1 since Go 1.22, func5 before.
start='runtime\.goexit.*{*} main\.main\.(func[45]|gowrap\d+){+} main\.repeat'
cat >expected <<END
    outer 100 $start main\.main\.func1 main\.outer main\.inner main\.work
    also $start main\.main\.func1 main\.outer main\.inner main\.work $other
    dynamic 100 $start main\.main\.func2 main\.dynamic main\..*circle.*draw{+} main\.work
    also $start main\.main\.func2 main\.dynamic main\..*circle.*draw{+} main\.work $other
    recursion 100 $start main\.main\.func3 main\.recurse{51} main\.work
    also $start main\.main\.func3 main\.recurse{*} main\.work $other
    also $start main\.main\.func3 main\.recurse{*} $other
    also $start $other
    also runtime\.goexit.*{*} $other main\.main.*{*} $other
    also $other ...
END
for ASSAY_SAMPLER in "${samplers[@]}"; do
    at_rate 10000
    "$ASSAY" record -q -F "$rate" -o golang.pb.gz -- ./golang "$amount" >/dev/null
    check "Go ($ASSAY_SAMPLER)" chains golang.pb.gz golang <expected
done
