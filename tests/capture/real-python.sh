# SPDX-License-Identifier: Apache-2.0
# CPython, each of those that are here: interpreter, json, re, sorting, compression, a thread.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
need python3 readelf

cat >busy.py <<'END'
import hashlib, json, re, sys, threading, time, zlib
end = float(sys.argv[1]) # of CPU time
def work():
    data = {"key%d" % i: list(range(i % 20)) for i in range(200)}
    while time.process_time() < end:
        text = json.dumps(data, sort_keys=True)
        data = json.loads(text)
        words = re.findall(r"[a-z]+\d+", text)
        sorted(words, key=lambda word: word[::-1])
        zlib.compress(text.encode(), 1)
        hashlib.sha256(text.encode()).hexdigest()
other = threading.Thread(target=work)
other.start()
work()
other.join()
END
declare -A seen=()
for python in "$(command -v python3)" /usr/bin/python3; do
    [ -x "$python" ] || continue
    program=$(readlink -f "$("$python" -c 'import sys; print(sys.executable)')")
    [ -z "${seen[$program]:-}" ] || continue
    seen[$program]=yes
    options=(--whole 99)
    ! has_symbols "$program" || options+=(--named 95)
    for ASSAY_SAMPLER in "${samplers[@]}"; do
        "$ASSAY" record -F 499 -o real.pb.gz -- "$program" busy.py "$real_cpu_seconds" 2>said
        sed 's/^/# /' said
        check "$program ($ASSAY_SAMPLER)" python3 "$capture/real.py" real.pb.gz "${options[@]}"
    done
done
