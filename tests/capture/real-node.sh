# SPDX-License-Identifier: Apache-2.0
# Node: code that V8 generates keeps frame pointers and has no unwind information; what it calls does.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
# Toolchains: node
. "$ROOT/tests/capture/common.bash"
need python3 node

cat >busy.js <<'END'
const zlib = require("zlib");
const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
let data = {};
for (let i = 0; i < 200; i++) data["key" + i] = Array.from({ length: i % 20 }, (_, n) => n);
while (used() < Number(process.argv[2])) {
    const text = JSON.stringify(data);
    data = JSON.parse(text);
    const words = text.match(/[a-z]+\d+/g);
    words.sort((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1));
    zlib.deflateSync(text);
}
END
# Debian has V8 in a library without a symbol table: then only what V8 generates has names.
program=$(readlink -f "$(command -v node)")
library=$(ldd "$program" | sed -n 's/.*libnode[^ ]* => \([^ ]*\).*/\1/p')
options=(--whole 99 --named 90)
has_symbols "${library:-$program}" || options+=(--in '\[jit .*')
# V8 writes the names of what it generates into a file that is called after the process.
trap 'ended=$?; rm -f "/tmp/perf-$(cat pid 2>/dev/null || echo none).map"; finish "$ended"' EXIT
for ASSAY_SAMPLER in "${samplers[@]}"; do
    # shellcheck disable=SC2016 # of the other shell
    "$ASSAY" record -F 499 -o real.pb.gz -- sh -c 'echo $$ >pid; exec "$@"' sh \
        node --perf-basic-prof busy.js "$real_cpu_seconds" 2>said
    sed 's/^/# /' said
    check "Node ($ASSAY_SAMPLER)" python3 "$capture/real.py" real.pb.gz "${options[@]}"
    rm -f "/tmp/perf-$(cat pid).map"
done
