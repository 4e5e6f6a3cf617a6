# SPDX-License-Identifier: Apache-2.0
# CPU profiles in traces of Node.js: samples of each function and below it, as JavaScript adds them up
# from the trace's events.
# Toolchains: node
command -v node >/dev/null || { echo "There is no node here." && exit 77; }
cat >load.js <<'END'
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function other(n) { let s = ''; for (let i = 0; i < n; i++) s += i; return s.length; }
function both() { inner(3e6); other(2e5); }
for (let i = 0; i < 30; i++) both();
END
# The trace has two profiles: V8 only starts its profiler for the one of --cpu-prof.
node --cpu-prof --trace-event-categories disabled-by-default-v8.cpu_profiler --trace-event-file-pattern own.json load.js
grep -q '"ProfileChunk"' own.json || { echo "This Node.js writes no CPU profiles into traces." && exit 77; }
cat >sums.js <<'END'
const { traceEvents } = JSON.parse(require('fs').readFileSync('own.json', 'utf8'));
const flat = new Map(), cum = new Map();
const add = (map, key) => map.set(key, (map.get(key) || 0) + 1);
const profiles = new Map();
let total = 0;
for (const event of traceEvents.filter((event) => event.name === 'ProfileChunk')) {
    const key = event.pid + ' ' + event.id;
    if (!profiles.has(key)) profiles.set(key, new Map());
    const nodes = profiles.get(key);
    const { nodes: added = [], samples = [] } = event.args.data.cpuProfile || {};
    for (const node of added) nodes.set(node.id, node);
    for (const id of samples) {
        total++;
        const seen = new Set();
        for (let node = nodes.get(id); node; node = nodes.get(node.parent)) {
            const name = node.callFrame.functionName;
            if (node.id === id) add(flat, name);
            if (!seen.has(name)) add(cum, name);
            seen.add(name);
        }
    }
}
console.log('total', total);
for (const name of ['both', 'inner', 'other']) console.log(name, flat.get(name) || 0, cum.get(name) || 0);
END
node sums.js >expected
"$ASSAY" report -n 0 --format json -t samples own.json >report.json
jq -r '"total \(.total)", (("both", "inner", "other") as $name | [.rows[] | select(.function == $name)]
    | "\($name) \(.[0].flat // 0) \(.[0].cum // 0)")' report.json >got
cat got
diff expected got
# Something was sampled.
jq -e '.total > 50 and (.rows | any(.function == "inner" and .flat > 0))' report.json
