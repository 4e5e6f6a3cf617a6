// SPDX-License-Identifier: Apache-2.0
// The smallest writer of pprof files: nanoseconds, of CPU time or another `kind`, by stack, for tests.

function varint(value) {
  const out = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return [...out, Number(rest)];
    out.push(Number(rest & 127n) | 128);
  }
}

const number = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, content) => [...varint(field << 3 | 2), ...varint(content.length), ...content];
const packed = (field, values) => bytes(field, values.flatMap(varint));

// `stacks` are pairs of names from the root, joined by semicolons, and nanoseconds. `places` may say
// of a name in which file of `build`, and at which line, it is. `kind` is what the nanoseconds are.
export function pprof(stacks, { seconds = 10, at = 0, build = '', places = {}, kind = 'cpu' } = {}) {
  const strings = new Map([['', 0]]);
  const index = (text) => {
    if (!strings.has(text)) strings.set(text, strings.size);
    return strings.get(text);
  };
  const type = (field, name, unit) => bytes(field, [...number(1, index(name)), ...number(2, index(unit))]);
  const functions = new Map();
  const locationOf = (name) => {
    if (!functions.has(name)) functions.set(name, functions.size + 1);
    return functions.get(name);
  };
  const out = [...type(1, 'samples', 'count'), ...type(1, kind, 'nanoseconds')];
  for (const [stack, ns] of stacks)
    out.push(...bytes(2, [...packed(1, stack.split(';').reverse().map(locationOf)),
      ...packed(2, [Math.round(ns / 1e7), Math.round(ns)])]));
  for (const [name, id] of functions) {
    const { file = '', line = 0 } = places[name] ?? {};
    out.push(...bytes(4, [...number(1, id), ...(build ? number(2, 1) : []),
      ...bytes(4, [...number(1, id), ...number(2, line)])]));
    out.push(...bytes(5, [...number(1, id), ...number(2, index(name)), ...number(4, index(file))]));
  }
  if (build) out.push(...bytes(3, [...number(1, 1), ...number(3, 4096), ...number(6, index(build))]));
  out.push(...type(11, kind, 'nanoseconds'), ...number(12, 10_000_000));
  if (at > 0) out.push(...number(9, BigInt(at) * 1_000_000_000n));
  out.push(...number(10, seconds * 1e9));
  for (const text of strings.keys()) out.push(...bytes(6, [...Buffer.from(text)]));
  return Buffer.from(out);
}
