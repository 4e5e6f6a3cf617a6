# SPDX-License-Identifier: Apache-2.0
# Heap profiles of real programs: CPython, C++ with glibc's and with jemalloc's operators, and Redis;
# what they hold is where a leak was planted, and as much.
. "$ROOT/tests/capture/common.bash"
need g++ python3
unset ASSAY_SAMPLER # the best that works

# bytes TYPE FUNCTION FILE: its cumulative value.
bytes() {
    "$ASSAY" report -n 0 -t "$1" -f json "$3" | python3 -c '
import json, sys
rows = json.load(sys.stdin)["rows"]
print(sum(row["cum"] for row in rows if row["function"].startswith(sys.argv[1])))' "$2"
}
# about VALUE TRUTH PERCENT
about() { python3 -c 'import sys; v, t, p = map(float, sys.argv[1:]); print(v, t); sys.exit(abs(v - t) > t * p / 100)' "$@"; }

g++ -O2 -g -o leak "$ROOT/tests/heap/leak.cc"
jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc.so.2 .*=> //p' | head -n 1)
for allocator in "" ${jemalloc:+"$jemalloc"}; do
    LD_PRELOAD=$allocator "$ASSAY" record --mode heap -o leak.pb.gz -- ./leak >out 2>said || fail "leak"
    cat said
    # 100,000 strings of 1,001 bytes and 32 for each, and the vector's last 1 MiB.
    check "C++ holds what it leaked (${allocator:-glibc})" \
        about "$(bytes inuse_space leak_some leak.pb.gz)" 104300000 25
    check "C++ whole stacks (${allocator:-glibc})" grep -q ', 100% of stacks complete, 0 lost' said
done
[ -n "$jemalloc" ] || skip_case "jemalloc" "libjemalloc.so.2 is not installed"

cat >leak.py <<'END'
kept = []
def leak():
    for i in range(200):
        kept.append(bytearray(500000))
def churn():
    for i in range(2000):
        bytes(500000)
leak()
churn()
import os
os._exit(0)
END
python=$(command -v /usr/bin/python3 || command -v python3)
"$ASSAY" record --mode heap -o python.pb.gz -- "$python" leak.py 2>said || fail "python"
cat said
if [[ " ${samplers[*]} " == *" bpf "* ]]; then
    check "Python's functions hold memory" grep -q 'leak.py:leak$' said
    check "Python's functions allocate" grep -q 'leak.py:churn$' said
    outermost='leak.py:<module>'
else
    outermost=_start
    skip_case "Python's functions" "BPF programs cannot be used here"
fi
check "CPython allocates" about "$(bytes alloc_space "$outermost" python.pb.gz)" 1110000000 20
check "CPython holds" about "$(bytes inuse_space "$outermost" python.pb.gz)" 101000000 20

# Debian's tools bring the server along under another name.
if server=$(command -v redis-server || command -v redis-check-rdb); then
    # shellcheck disable=SC2016
    "$ASSAY" record --mode heap -o redis.pb.gz -- bash -c 'exec -a redis-server "$@"' - "$server" \
        --port 0 --unixsocket "$PWD/redis.sock" --save '' >/dev/null 2>said &
    recorder=$!
    started+=("$recorder")
    for _ in $(seq 200); do
        [ -S redis.sock ] && break
        sleep 0.05
    done
    redis-cli -s redis.sock eval "for i = 1, 200000 do redis.call('set', 'key:' .. i, string.rep('x', 500)) end" 0 >/dev/null
    redis-cli -s redis.sock info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p' >used
    redis-cli -s redis.sock shutdown nosave >/dev/null || true
    wait "$recorder" || true
    cat said
    # Redis counts what the allocator rounds up.
    check "Redis holds what it says" about "$(bytes inuse_space main redis.pb.gz)" "$(cat used)" 25
else
    skip_case "Redis" "redis-server is not installed"
fi
