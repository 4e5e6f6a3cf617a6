# SPDX-License-Identifier: Apache-2.0
# Ids of spans on samples of Go programs, by labels of goroutines: what pprof.Do sets is what samples
# have, in a stripped program and in one with C.
# Toolchains: go
# Chance: shares of samples are estimates.
. "$ROOT/tests/capture/common.bash"
need go python3
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "Labels of goroutines are read by BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf GO111MODULE=off

cp "$subjects/spans.go" .
CGO_ENABLED=0 go build -ldflags=-s -o spans-go spans.go 2>said ||
    skip_all "Go cannot build here: $(tail -n 1 said)"
"$ASSAY" record -F 499 -o go.otlp -- ./spans-go 2 25 16000 >truth 2>said || cat said
check "ids of goroutines" python3 "$capture/spans.py" go.otlp 100 cpu go <truth
"$ASSAY" record -F 499 -o free.otlp -- ./spans-go 8 20 4000 free >truth 2>said || cat said
check "... that change threads" python3 "$capture/spans.py" free.otlp 50 cpu go <truth

mkdir c
sed 's/^import (/import "C"\n\nimport (/' spans.go >c/main.go
if (cd c && CGO_ENABLED=1 go build -o ../spans-c main.go 2>../said); then
    "$ASSAY" record -F 499 -o c.otlp -- ./spans-c 2 25 16000 >truth 2>said || cat said
    check "... beside C" python3 "$capture/spans.py" c.otlp 100 cpu go <truth
else
    echo "not tested: Go cannot build with C here: $(tail -n 1 said)"
fi
