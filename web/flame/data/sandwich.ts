// SPDX-License-Identifier: Apache-2.0
// The two trees of one function: its callers, inverted, and its callees, each merged over all of
// the function's outermost occurrences. Recursive calls stay visible among the callees and are
// counted once. Merging goes level by level and groups by function in plain arrays, without hashing.

import { makeTree, makeValues, totalsOf, type Graph, type Tree } from './tree';

// Deeper levels are left out beyond this many merged nodes, or source nodes visited.
const MAX_MERGED = 1_000_000;
const MAX_VISITED = 8_000_000;

export interface Sandwich {
  func: number;
  callers: Graph;
  callees: Graph;
  // A limit above was reached: the deepest levels are missing.
  truncated: boolean;
}

// Source nodes with the merged node each belongs to. `origin` is the occurrence a caller was
// reached from, whose total it carries.
interface Level {
  node: Int32Array;
  origin: Int32Array;
  merged: Int32Array;
}

interface Merged {
  parent: number[];
  func: number[];
  inlined: number[];
  levels: Level[];
  truncated: boolean;
}

// Yields the next level's source nodes: all children of a node, or its parent.
type Expand = (level: Level, visit: (index: number, node: number) => void) => void;

// By function: the merged child it has under `owner`. Valid only while that is the owner at hand.
interface Slots {
  owner: Int32Array;
  child: Int32Array;
}

function merge(
  tree: Tree, functionCount: number, occurrences: Int32Array, func: number, expand: Expand,
): Merged {
  const out: Merged = { parent: [-1], func: [func], inlined: [0], levels: [], truncated: false };
  let level: Level = {
    node: occurrences,
    origin: occurrences,
    merged: new Int32Array(occurrences.length),
  };
  const slots: Slots = {
    owner: new Int32Array(functionCount).fill(-1),
    child: new Int32Array(functionCount),
  };
  let visited = 0;
  while (level.node.length > 0) {
    out.levels.push(level);
    visited += level.node.length;
    if (out.parent.length > MAX_MERGED || visited > MAX_VISITED) {
      out.truncated = true;
      break;
    }
    level = nextLevel(tree, level, expand, slots, out);
  }
  return out;
}

function nextLevel(
  tree: Tree, level: Level, expand: Expand, slots: Slots, out: Merged,
): Level {
  let count = 0;
  expand(level, () => count++);
  const node = new Int32Array(count);
  const origin = new Int32Array(count);
  const owner = new Int32Array(count);
  let fill = 0;
  expand(level, (index, source) => {
    node[fill] = source;
    origin[fill] = level.origin[index];
    owner[fill++] = level.merged[index];
  });

  // Entries of one owner are brought together, so that one slot per function is enough.
  const merged = new Int32Array(count);
  for (const entry of groupBy(owner)) {
    const func = tree.func[node[entry]];
    if (slots.owner[func] !== owner[entry]) {
      slots.owner[func] = owner[entry];
      slots.child[func] = out.parent.length;
      out.parent.push(owner[entry]);
      out.func.push(func);
      out.inlined.push(1);
    }
    const child = slots.child[func];
    merged[entry] = child;
    if (!tree.inlined[node[entry]]) out.inlined[child] = 0;
  }
  return { node, origin, merged };
}

// A stable counting sort: the entries' indexes, ordered by owner.
function groupBy(owner: Int32Array): Int32Array {
  if (owner.length === 0) return new Int32Array(0);
  let low = owner[0];
  let high = owner[0];
  for (const id of owner) {
    if (id < low) low = id;
    if (id > high) high = id;
  }
  const start = new Int32Array(high - low + 2);
  for (const id of owner) start[id - low + 1]++;
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  const order = new Int32Array(owner.length);
  for (let i = 0; i < owner.length; i++) order[start[owner[i] - low]++] = i;
  return order;
}

function toTree(merged: Merged): Tree {
  return makeTree(
    Int32Array.from(merged.parent), Int32Array.from(merged.func), Uint8Array.from(merged.inlined));
}

// A callee's self value is the sum over the nodes merged into it. Where levels were cut, the last
// level takes whole totals, so that sums stay right.
function calleeSelf(merged: Merged, self: Float64Array, total: Float64Array): Float64Array {
  const out = new Float64Array(merged.parent.length);
  merged.levels.forEach((level, depth) => {
    const cut = merged.truncated && depth === merged.levels.length - 1;
    const column = cut ? total : self;
    for (let i = 0; i < level.node.length; i++) out[level.merged[i]] += column[level.node[i]];
  });
  return out;
}

// In the inverted tree a stack "ends" where it began: at the caller that has no caller.
function callerSelf(merged: Merged, tree: Tree, total: Float64Array): Float64Array {
  const out = new Float64Array(merged.parent.length);
  merged.levels.forEach((level, depth) => {
    const cut = merged.truncated && depth === merged.levels.length - 1;
    for (let i = 0; i < level.node.length; i++)
      if (cut || tree.parent[level.node[i]] <= 0)
        out[level.merged[i]] += total[level.origin[i]];
  });
  return out;
}

// `outer` comes from outermost() in tree.ts.
export function makeSandwich(
  graph: Graph, functionCount: number, func: number, outer: Uint8Array,
): Sandwich {
  const { tree, values } = graph;
  const found: number[] = [];
  for (let n = 1; n < tree.size; n++) if (outer[n] && tree.func[n] === func) found.push(n);
  const occurrences = Int32Array.from(found);

  const up = merge(tree, functionCount, occurrences, func, (level, visit) => {
    for (let i = 0; i < level.node.length; i++) {
      const caller = tree.parent[level.node[i]];
      if (caller > 0) visit(i, caller);
    }
  });
  const down = merge(tree, functionCount, occurrences, func, (level, visit) => {
    for (let i = 0; i < level.node.length; i++)
      for (let n = tree.firstChild[level.node[i]]; n > 0; n = tree.nextSibling[n]) visit(i, n);
  });
  // A caller is not "inlined into" the frame below it in the inverted tree.
  up.inlined.fill(0);

  const upTree = toTree(up);
  const downTree = toTree(down);
  const { self, total, weight, baseSelf, baseTotal } = values;
  const callerValues = makeValues(
    upTree, callerSelf(up, tree, total), baseTotal && callerSelf(up, tree, baseTotal));
  if (weight !== total)
    callerValues.weight = totalsOf(upTree, callerSelf(up, tree, weight));
  const calleeValues = makeValues(
    downTree, calleeSelf(down, self, total),
    baseSelf && baseTotal && calleeSelf(down, baseSelf, baseTotal));
  if (weight !== total) {
    const positive = self.map((value) => Math.max(0, value));
    calleeValues.weight = totalsOf(downTree, calleeSelf(down, positive, weight));
  }
  return {
    func,
    callers: { ...graph, tree: upTree, values: callerValues },
    callees: { ...graph, tree: downTree, values: calleeValues },
    truncated: up.truncated || down.truncated,
  };
}
