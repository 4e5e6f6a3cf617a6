# SPDX-License-Identifier: Apache-2.0
# The same program under assay and under perf with DWARF stacks: the functions that matter have the
# same shares, by themselves and with what they call.
# Chance: two samplers see two different runs of the program.
. "$ROOT/tests/capture/common.bash"
need perf gcc python3

gcc -O2 -fomit-frame-pointer -o mix "$subjects/mix.c"
cat >busy.py <<'END'
import json, re
data = {"key%d" % i: list(range(i % 20)) for i in range(200)}
for i in range(500):
    text = json.dumps(data, sort_keys=True, indent=1)
    data = json.loads(text)
    words = re.findall(r"[a-z]+\d+", text)
    sorted(words, key=lambda word: word[::-1])
END
python=$(python3 -c 'import sys; print(sys.executable)')

# compare NAME COMMAND...: two runs of a program under changing load are not quite the same; a
# function that is missing or misplaced is so in all of them.
compare() {
    local name=$1 attempt
    shift
    for attempt in 1 2 3; do
        "$ASSAY" record -q --user --interpreter-frames -F 999 -o "$name.pb.gz" -- "$@"
        if python3 "$capture/compare_perf.py" "$name.pb.gz" "$name.txt"; then
            return 0
        fi
        echo "attempt $attempt differs"
    done
    return 1
}

# agrees NAME COMMAND...
agrees() {
    local name=$1
    shift
    if ! perf record -q -e cpu-clock:u -F 999 --call-graph dwarf,32768 -o "$name.data" "$@" \
        >/dev/null 2>said; then
        skip_all "perf may not record here: $(tr '\n' ' ' <said)"
    fi
    perf script -i "$name.data" --no-inline --no-demangle -F ip,sym >"$name.txt" 2>/dev/null
    rm "$name.data"
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        check "$name ($ASSAY_SAMPLER)" compare "$name" "$@"
    done
}
agrees mix ./mix 2000
export PYTHONHASHSEED=0
agrees python "$python" busy.py
