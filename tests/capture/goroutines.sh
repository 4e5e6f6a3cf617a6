# SPDX-License-Identifier: Apache-2.0
# Wall-clock time by goroutine: what each waits for, where, and for how long.
# Toolchains: go
ASSAY_SAMPLERS=bpf
. "$ROOT/tests/capture/common.bash"
need go python3

cp "$subjects/goroutines.go" .
export GO111MODULE=off CGO_ENABLED=0
if ! go build -o waits goroutines.go 2>said; then
    skip_all "Go cannot build here: $(tail -n 1 said)"
fi
rm said
mkfifo said

start() { # ARGUMENT...: sets `pid`
    ./waits "$@" >said &
    started+=("$!")
    read -r pid <said
}

start
"$ASSAY" record -q -m goroutine -d 2 -p "$pid" -o waits.pb.gz
check "goroutines" python3 "$capture/goroutines.py" waits.pb.gz few 2
check "... each by its number" sh -c '"$0" info waits.pb.gz | grep -E "goroutine \([0-9]+ values\)"' "$ASSAY"
end_process "$pid"
started=()

start many
"$ASSAY" record -q -m goroutine -d 2 -p "$pid" -o many.pb.gz
check "more than are looked at at once" python3 "$capture/goroutines.py" many.pb.gz many 2
end_process "$pid"
started=()

# Beside threads: both types in one recording.
start
"$ASSAY" record -q -m wall,goroutine -d 2 -p "$pid" -o both.pb.gz
"$ASSAY" info both.pb.gz >both.txt
check "threads" grep -E '(types|^) +wall/nanoseconds' both.txt
check "... and goroutines" grep 'goroutine_wall/nanoseconds' both.txt
end_process "$pid"
started=()
