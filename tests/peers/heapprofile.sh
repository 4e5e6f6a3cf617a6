# SPDX-License-Identifier: Apache-2.0
# Heap profiles of Node.js, written by V8's own sampler: bytes of each function and below it, as
# JavaScript adds them up from the file.
# Toolchains: node
command -v node >/dev/null || { echo "There is no node here." && exit 77; }
cat >heap.js <<'END'
const keep = (globalThis.keep = []);
function small(n) { for (let i = 0; i < n; i++) keep.push({ a: i, b: [i] }); }
function large(n) { for (let i = 0; i < n; i++) keep.push(new Array(100).fill(i)); }
function both() { small(20000); large(5000); }
both();
large(5000);
END
node --heap-prof --heap-prof-interval=4096 --heap-prof-name=own.heapprofile heap.js
cat >sums.js <<'END'
const { head } = JSON.parse(require('fs').readFileSync('own.heapprofile', 'utf8'));
const flat = new Map(), cum = new Map();
const add = (map, key, value) => map.set(key, (map.get(key) || 0) + value);
function visit(node, above) {
    const name = node.callFrame.functionName || '(anonymous)';
    let sum = node.selfSize;
    add(flat, name, node.selfSize);
    for (const child of node.children) sum += visit(child, new Set(above).add(name));
    if (!above.has(name)) add(cum, name, sum);
    return sum;
}
console.log('total', visit(head, new Set()));
for (const name of ['small', 'large', 'both']) console.log(name, flat.get(name), cum.get(name));
END
node sums.js >expected
"$ASSAY" report -n 0 --format json -t inuse_space own.heapprofile >report.json
jq -r '"total \(.total)", (("small", "large", "both") as $name | .rows[]
    | select(.function == $name) | "\($name) \(.flat) \(.cum)")' report.json >got
cat got
diff expected got
# All of it is really there.
jq -e '.total > 1000000' report.json
