// SPDX-License-Identifier: Apache-2.0
// Puts more detail into a profile: a part of it that was asked for again, with frames that were
// folded into "(other)" or "[other]" the first time, takes the place of what the profile had there.

import { makeTree, type Tree } from './tree';
import type { Profile } from './data';

// Folded away by who made the document, and by the store that was asked.
const OTHERS = ['(other)', '[other]'];

export function isOther(name: string): boolean {
  return OTHERS.includes(name);
}

// By type: what of the new and the old side is under such frames. Nothing less than that is missing
// from the picture.
export function cutOf(
  names: readonly string[], tree: Tree, self: readonly Float64Array[], base: readonly Float64Array[],
): Profile['cut'] {
  const nodes: number[] = [];
  const other = names.map(isOther);
  if (other.includes(true))
    for (let n = 1; n < tree.size; n++) if (other[tree.func[n]]) nodes.push(n);
  const sum = (column: Float64Array) => nodes.reduce((all, n) => all + Math.abs(column[n]), 0);
  return { value: self.map(sum), base: base.map(sum) };
}

// The node that a path of names leads to, or -1.
export function findPath(profile: Profile, path: readonly string[]): number {
  const { tree, names } = profile;
  let at = 0;
  for (const name of path) {
    let next = -1;
    for (let n = tree.firstChild[at]; n > 0 && next < 0; n = tree.nextSibling[n])
      if (names[tree.func[n]] === name) next = n;
    if (next < 0) return -1;
    at = next;
  }
  return at;
}

// Both documents have the same sample types, as two answers to one question do. Where they have not,
// or one lacks the path, the profile stays as it is.
export function graft(whole: Profile, part: Profile, path: readonly string[]): Profile {
  const into = findPath(whole, path);
  const out = findPath(part, path);
  if (into < 0 || out < 0 || whole.kind !== part.kind || whole.types.length !== part.types.length)
    return whole;
  const functionOf = mergeFunctions(whole, part);
  const below = (tree: Profile['tree'], root: number) => {
    const inside = new Uint8Array(tree.size);
    inside[root] = 1;
    for (let n = root + 1; n < tree.size; n++) inside[n] = inside[tree.parent[n]];
    return inside;
  };
  const replaced = below(whole.tree, into);
  const added = below(part.tree, out);
  const parent = [-1];
  const func = [-1];
  const inlined = [0];
  // Where each new node's values come from: a node of the whole, or as its complement one of the part.
  const source = [into === 0 ? ~out : 0];
  const idOf = new Int32Array(whole.tree.size);
  for (let n = 1; n < whole.tree.size; n++) {
    if (replaced[n] && n !== into) continue;
    idOf[n] = parent.length;
    parent.push(idOf[whole.tree.parent[n]]);
    func.push(whole.tree.func[n]);
    inlined.push(whole.tree.inlined[n]);
    source.push(n === into ? ~out : n);
  }
  const partId = new Int32Array(part.tree.size);
  partId[out] = idOf[into];
  for (let n = out + 1; n < part.tree.size; n++) {
    if (!added[n]) continue;
    partId[n] = parent.length;
    parent.push(partId[part.tree.parent[n]]);
    func.push(functionOf.of[part.tree.func[n]]);
    inlined.push(part.tree.inlined[n]);
    source.push(~n);
  }
  const column = (own: Float64Array, other: Float64Array) =>
    Float64Array.from(source, (n) => (n >= 0 ? own[n] : other[~n]));
  const tree = makeTree(Int32Array.from(parent), Int32Array.from(func), Uint8Array.from(inlined));
  const self = whole.self.map((own, t) => column(own, part.self[t]));
  const base = whole.base.map((own, t) => column(own, part.base[t]));
  return {
    ...whole,
    names: functionOf.names, files: functionOf.files, binaries: functionOf.binaries,
    tree, self, base,
    cut: cutOf(functionOf.names, tree, self, base),
    states: statesOf(whole, part, column),
    times: timesOf(whole, part, (n) => idOf[n], (n) => (added[n] ? partId[n] : -1)),
    findings: findingsOf(whole, part, functionOf.of),
    dropped: Math.max(0, whole.dropped - (parent.length - whole.tree.size)),
  };
}

// Those of functions that only the part has are added.
function findingsOf(whole: Profile, part: Profile, of: Int32Array): Profile['findings'] {
  return whole.findings.map((known, type) =>
    new Map([...[...part.findings[type]].map(([f, finding]) => [of[f], finding] as const), ...known]));
}

// Samples come in the same order in both: those of the part are in its nodes.
function timesOf(
  whole: Profile, part: Profile, ofWhole: (n: number) => number, ofPart: (n: number) => number,
): Profile['times'] {
  const { times } = whole;
  const other = part.times;
  if (!times || times.node.length !== other?.node.length) return undefined;
  const node = times.node.map((own, i) => {
    const inside = ofPart(other.node[i]);
    return inside >= 0 ? inside : ofWhole(own);
  });
  return { ...times, node };
}

// Only where both say the same states; otherwise they are asked for again.
function statesOf(
  whole: Profile, part: Profile, column: (own: Float64Array, other: Float64Array) => Float64Array,
): Profile['states'] {
  const { states } = whole;
  const others = states?.names.map((name) => part.states?.self[part.states.names.indexOf(name)]);
  if (!states || !others?.every((one) => one !== undefined)) return null;
  return { names: states.names, self: states.self.map((own, s) => column(own, others[s]!)) };
}

// The functions of both: where each of the part's is.
export function mergeFunctions(whole: Profile, part: Profile) {
  const names = whole.names.slice();
  const files = whole.files.slice();
  const binaries = whole.binaries.slice();
  const key = (profile: Profile, f: number) =>
    JSON.stringify([profile.names[f], profile.files[f], profile.binaries[f]]);
  const known = new Map(whole.names.map((_, f) => [key(whole, f), f]));
  const of = Int32Array.from(part.names, (name, f) => {
    const found = known.get(key(part, f));
    if (found !== undefined) return found;
    names.push(name);
    files.push(part.files[f]);
    binaries.push(part.binaries[f]);
    return names.length - 1;
  });
  return { of, names, files, binaries };
}
