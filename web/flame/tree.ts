// SPDX-License-Identifier: Apache-2.0
// A call tree as parallel columns, and the values on it. A child's id is always greater than its
// parent's, so a forward loop passes from callers to callees and a backward loop sums totals.

export interface Tree {
  size: number;
  parent: Int32Array;
  func: Int32Array;
  depth: Int32Array;
  inlined: Uint8Array;
  // The children of n are children[childStart[n]] … children[childStart[n + 1] - 1].
  childStart: Int32Array;
  children: Int32Array;
}

export interface Values {
  self: Float64Array;
  total: Float64Array;
  // What a rectangle's width stands for: the total, counting positive self values only. Equal to
  // `total` when nothing is negative, and children always fit inside their parent.
  weight: Float64Array;
  // The old profile's values in a diff, scaled; null otherwise.
  baseSelf: Float64Array | null;
  baseTotal: Float64Array | null;
}

// One tree with one set of values, its children sorted widest first on demand.
export interface Graph {
  tree: Tree;
  values: Values;
  children: Int32Array;
  sorted: Uint8Array;
  // The totals of the whole profile, which percentages refer to.
  whole: number;
  wholeBase: number;
}

export function makeTree(parent: Int32Array, func: Int32Array, inlined: Uint8Array): Tree {
  const size = parent.length;
  const depth = new Int32Array(size);
  const childStart = new Int32Array(size + 1);
  for (let n = 1; n < size; n++) {
    depth[n] = depth[parent[n]] + 1;
    childStart[parent[n] + 1]++;
  }
  for (let n = 0; n < size; n++) childStart[n + 1] += childStart[n];

  const children = new Int32Array(Math.max(0, size - 1));
  const next = childStart.slice();
  for (let n = 1; n < size; n++) children[next[parent[n]]++] = n;
  return { size, parent, func, depth, inlined, childStart, children };
}

// Sums from callees to callers; `least` is the smallest value of any node's own, or 0.
function sumUp({ parent, size }: Tree, self: Float64Array): { total: Float64Array; least: number } {
  const total = self.slice();
  let least = Math.min(0, self[0]);
  for (let n = size - 1; n > 0; n--) {
    if (self[n] < least) least = self[n];
    total[parent[n]] += total[n];
  }
  return { total, least };
}

export function totalsOf(tree: Tree, self: Float64Array): Float64Array {
  return sumUp(tree, self).total;
}

export function makeValues(tree: Tree, self: Float64Array, baseSelf: Float64Array | null): Values {
  const { total, least } = sumUp(tree, self);
  return {
    self,
    total,
    weight: least < 0 ? totalsOf(tree, self.map((value) => Math.max(0, value))) : total,
    baseSelf,
    baseTotal: baseSelf && totalsOf(tree, baseSelf),
  };
}

export function makeGraph(tree: Tree, values: Values, whole: number, wholeBase: number): Graph {
  return {
    tree,
    values,
    children: tree.children.slice(),
    sorted: new Uint8Array(tree.size),
    whole,
    wholeBase,
  };
}

// Sorts one node's children widest first, and by id where widths are equal. Only nodes that are
// drawn are ever sorted, which keeps a million-node graph cheap.
export function sortChildren(graph: Graph, node: number): void {
  if (graph.sorted[node]) return;
  graph.sorted[node] = 1;
  const { children } = graph;
  const { weight } = graph.values;
  const start = graph.tree.childStart[node];
  const end = graph.tree.childStart[node + 1];
  if (end - start > 24) {
    children.subarray(start, end).sort((a, b) => weight[b] - weight[a] || a - b);
    return;
  }
  for (let i = start + 1; i < end; i++) {
    const child = children[i];
    let j = i - 1;
    while (j >= start && weight[children[j]] < weight[child]) {
      children[j + 1] = children[j];
      j--;
    }
    children[j + 1] = child;
  }
}

// Marks the nodes that have no caller with the same function: recursion counts once, at its
// outermost frame.
export function outermost(tree: Tree, functionCount: number): Uint8Array {
  const { size, func, childStart, children } = tree;
  const flags = new Uint8Array(size);
  const open = new Int32Array(functionCount);
  // Each node is pushed once to enter it and once, as its complement, to leave it.
  const stack = new Int32Array(2 * size + 1);
  let top = 0;
  stack[top++] = 0;
  while (top > 0) {
    const entry = stack[--top];
    if (entry < 0) {
      open[func[~entry]]--;
      continue;
    }
    if (func[entry] >= 0) {
      if (open[func[entry]]++ === 0) flags[entry] = 1;
      stack[top++] = ~entry;
    }
    for (let i = childStart[entry]; i < childStart[entry + 1]; i++) stack[top++] = children[i];
  }
  return flags;
}

// The nodes from the root to `node`, both included.
export function pathTo(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let n = node; n >= 0; n = tree.parent[n]) path.push(n);
  return path.reverse();
}

export function isInside(tree: Tree, node: number, ancestor: number): boolean {
  let n = node;
  while (n > ancestor) n = tree.parent[n];
  return n === ancestor;
}
