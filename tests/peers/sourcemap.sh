# SPDX-License-Identifier: Apache-2.0
# Source maps of esbuild's: our reader beside Node.js's at random places of a real bundle; all of a
# bundle's functions beside TypeScript's parser; and a minified program's CPU profile, which gets the
# names of its source when the map is sent.
# Toolchains: node
. "$ROOT/tests/server/common.bash"
type node >/dev/null || { echo "node is missing."; exit 77; }
esbuild=$ROOT/web/node_modules/.bin/esbuild
[ -x "$esbuild" ] || { echo "esbuild is missing: ./dev build installs it in web/node_modules."; exit 77; }

# ---- places ----
# The server's own page: thousands of functions of many files, in one line and in many.
cat >places.mjs <<'J'
import { readFileSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
const [, , mapFile, codeFile, asked, wanted] = process.argv;
const json = JSON.parse(readFileSync(mapFile, "utf8"));
json.mappings += ";"; // at the very end Node.js 20 gives a segment without a name the last one's
const map = new SourceMap(json);
const lines = readFileSync(codeFile, "utf8").split("\n");
let seed = 12345, questions = "", answers = "", found = 0;
const random = (n) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % n;
for (let i = 0; i < 20000; i++) {
    const line = random(lines.length), column = random(lines[line].length + 2);
    const entry = map.findEntry(line, column);
    questions += `${line + 1} ${column + 1}\n`;
    // Node.js goes back to earlier lines where a line has nothing before the column.
    if (entry.generatedLine === line && entry.originalSource) {
        answers += `${entry.originalSource}\t${entry.originalLine + 1}\t${entry.originalColumn + 1}\t${entry.name ?? ""}\n`;
        found++;
    } else answers += "\n";
}
writeFileSync(asked, questions);
writeFileSync(wanted, answers);
if (found < 5000) throw new Error(`only ${found} places are known`);
console.log(`${found} of 20000 places are known`);
J
for options in --minify --minify-identifiers; do
    "$esbuild" "$ROOT/web/flame/main.ts" --bundle --sourcemap "$options" --outfile=page.js --log-level=error
    node places.mjs page.js.map page.js asked.txt wanted.txt
    "$DUMP_MAP" page.js.map <asked.txt >got.txt
    diff wanted.txt got.txt | sed -n 1,10p
    cmp wanted.txt got.txt
done

# ---- names ----
# All functions of the server's page: none gets a wrong one.
typescript=$ROOT/web/node_modules/typescript/lib/typescript.js
[ -e "$typescript" ] || { echo "typescript is missing: ./dev build installs it in web/node_modules."; exit 77; }
"$esbuild" "$ROOT/web/ui/main.tsx" --bundle --sourcemap --minify --jsx=automatic \
    --jsx-import-source=preact --outfile=ui.js --log-level=error
node "$ROOT/tests/peers/sourcemap_names.mjs" "$typescript" "$DUMP_MAP" ui.js ui.js.map

# A program that runs.
mkdir src
cat >src/main.ts <<'J'
import { Hasher, walk } from "./work";
const roundTrips = (count: number): number => {
    let total = 0;
    for (let i = 0; i < count; i++) total += spinOuter(i);
    return total;
};
function spinOuter(seed: number): number {
    const hasher = new Hasher(seed);
    return hasher.digestAll(walk(seed));
}
const viaExpression = function (count: number) { return roundTrips(count); };
const asyncArrow = async (count: number) => viaExpression(count);
const single = (x: number) => asyncArrow(x);
export const table = { handler(n: number) { return single(n); }, other: (n: number) => table.handler(n) };
const end = Date.now() + 700;
while (Date.now() < end) table.other(300);
J
cat >src/work.ts <<'J'
export class Hasher {
    constructor(private seed: number) {}
    digestAll(list: number[]): number {
        let h = this.seed | 0;
        for (const item of list) h = mixBits(h, item);
        return h;
    }
}
function mixBits(a: number, b: number): number {
    for (let i = 0; i < 200; i++) { a = Math.imul(a ^ b, 0x5bd1e995); a ^= a >>> 15; }
    return a;
}
function* generate(n: number) { for (let i = 0; i < 40; i++) yield (n * i) % 7; }
export const walk = (n: number): number[] => [...generate(n)].map((value) => value + 1);
J
"$esbuild" src/main.ts --bundle --minify --sourcemap --platform=node --outfile=dist/app.js --log-level=error
node --cpu-prof --cpu-prof-name=app.cpuprofile dist/app.js
start_server names --data store -c keep.yaml
push app.cpuprofile 'service=shop&version=1&from=now-10s' >/dev/null
functions() {
    get "/api/v1/top?query=wall:wall:nanoseconds::&limit=1000&from=now-1h&to=now%2B1h" >top.json
    json top.json '" ".join(sorted(f["function"] for f in d["functions"]))'
}
[[ " $(functions) " != *" mixBits "* ]]
"$ASSAY" debuginfo upload --server "$url" --service shop --version 1 dist
functions >names.txt
for name in mixBits spinOuter roundTrips viaExpression asyncArrow single handler other digestAll; do
    grep -w "$name" names.txt >/dev/null || { echo "$name isn't there:"; cat names.txt; exit 1; }
done
# No function is called by its parameter.
if tr ' ' '\n' <names.txt | grep -xE 'count|seed|x|n|value'; then exit 1; fi
get "/api/v1/flame?query=wall:wall:nanoseconds::&format=folded&from=now-1h&to=now%2B1h" >folded.txt
grep 'other;handler;single;asyncArrow;viaExpression;roundTrips;spinOuter;digestAll;mixBits ' folded.txt >/dev/null
get "/api/v1/lines?query=wall:wall:nanoseconds::&function=mixBits&from=now-1h&to=now%2B1h" >lines.json
grep 'src/work.ts' lines.json >/dev/null
stop_server
