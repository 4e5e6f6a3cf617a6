#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The trace engine of Chrome's developer tools (npm: @paulirish/trace_engine) opens the traces that assay
# writes: each thread has its profile, with as many samples of each function and over the same time.
# Toolchains: node

skip() {
    echo "$1"
    exit 77
}
command -v npm >/dev/null || skip "There is no npm here."
engine=$(npm root -g)/@paulirish/trace_engine
[ -d "$engine" ] || skip "There is no trace engine here (npm install -g @paulirish/trace_engine)."
cat >samples.mjs <<'END'
import { readFileSync } from 'node:fs';
const [engine, path] = process.argv.slice(2);
const { TraceModel } = await import(`${engine}/models/trace/trace.js`);
const model = TraceModel.Model.createWithAllHandlers();
await model.parse(JSON.parse(readFileSync(path, 'utf8')).traceEvents, { metadata: {} });
const { data } = model.parsedTrace(0);
const sums = new Map();
let threads = 0;
for (const profiles of data.Samples.profilesInProcess.values())
  for (const { parsedProfile: profile } of profiles.values()) {
    threads++;
    for (const id of profile.samples) {
      const node = profile.nodeById(id);
      sums.set(node.functionName, (sums.get(node.functionName) ?? 0) + 1);
    }
  }
console.log('threads', threads);
for (const [name, count] of [...sums].sort()) console.log(count, name);
END
fixtures=$ROOT/tests/fixtures
for name in man/cpu.pb.gz perf-script/stacks.txt; do
    "$ASSAY" convert "$fixtures/$name" -o own.trace.json
    node samples.mjs "$engine" own.trace.json >theirs.txt || skip "This Node.js can't run the trace engine."
    # As assay reads the same trace: one sample for each of a thread's.
    "$ASSAY" convert --sample-type samples own.trace.json -o own.folded
    sed -E 's/^(.*;)?([^;]*) ([0-9]+)$/\3 \2/' own.folded |
        awk '{ n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n } END { for (f in sum) print sum[f], f }' |
        LC_ALL=C sort -k 2 >ours.txt
    grep -v -E '^threads|\((root|idle|program)\)' theirs.txt | LC_ALL=C sort -k 2 >sums.txt
    cmp ours.txt sums.txt
    echo "$name: $(wc -l <sums.txt) functions, $(head -1 theirs.txt): the same"
done
