// SPDX-License-Identifier: Apache-2.0
// A call tree as parallel columns, and the values on it. A child's id is always greater than its
// parent's, so a forward loop passes from callers to callees and a backward loop sums totals.

export interface Tree {
  size: number;
  parent: Int32Array;
  func: Int32Array;
  inlined: Uint8Array;
  // A node's children in the order of their ids: its first, and of each the next. 0 ends the list,
  // since the root is nobody's child.
  firstChild: Int32Array;
  nextSibling: Int32Array;
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

// One tree with one set of values.
export interface Graph {
  tree: Tree;
  values: Values;
  // The totals of the whole profile, which percentages refer to.
  whole: number;
  wholeBase: number;
}

export function makeTree(parent: Int32Array, func: Int32Array, inlined: Uint8Array): Tree {
  const size = parent.length;
  const firstChild = new Int32Array(size);
  const nextSibling = new Int32Array(size);
  for (let n = size - 1; n > 0; n--) {
    nextSibling[n] = firstChild[parent[n]];
    firstChild[parent[n]] = n;
  }
  return { size, parent, func, inlined, firstChild, nextSibling };
}

// How many callers a node has.
export function depthOf({ parent }: Tree, node: number): number {
  let depth = 0;
  for (let n = parent[node]; n >= 0; n = parent[n]) depth++;
  return depth;
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

// The same with widths that stand for the size of the change: of each node's own, added up, so that
// growth and shrinkage don't cancel out.
export function byChange(graph: Graph): Graph {
  const { tree, values } = graph;
  const { self, baseSelf } = values;
  if (!baseSelf) return graph;
  return {
    ...graph,
    values: { ...values, weight: totalsOf(tree, self.map((value, n) => Math.abs(value - baseSelf[n]))) },
  };
}

// Widest first, and by id where widths are equal.
export function childrenOf({ tree, values }: Graph, node: number): number[] {
  const { weight } = values;
  const children: number[] = [];
  for (let n = tree.firstChild[node]; n > 0; n = tree.nextSibling[n]) children.push(n);
  return children.sort((a, b) => weight[b] - weight[a] || a - b);
}

// Marks the nodes that have no caller with the same function: recursion counts once, at its
// outermost frame.
export function outermost(tree: Tree, functionCount: number): Uint8Array {
  const { size, func, firstChild, nextSibling } = tree;
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
    for (let n = firstChild[entry]; n > 0; n = nextSibling[n]) stack[top++] = n;
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
