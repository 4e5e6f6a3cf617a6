// SPDX-License-Identifier: Apache-2.0
// Turns a graph and a zoomed node into rectangles, row by row. Children come widest first, and nothing
// is looked at below one too narrow to see: the work follows what is visible, not the size of the
// graph. What was left out becomes one "rest" rectangle, so that no space lies.

import { depthOf, pathTo, type Graph } from './tree';

// What takes less than half a pixel is not drawn: a pixel has room for one colour.
const MIN_WIDTH_PX = 0.5;
const MIN_REST_PX = 1;
// More siblings than this are not sorted one by one.
const MANY = 24;

export interface Layout {
  zoom: number;
  width: number;
  // Row r holds rectangles rowStart[r] … rowStart[r + 1] - 1, from left to right. A node's row is
  // its depth.
  rows: number;
  rowStart: number[];
  x: Float64Array;
  w: Float64Array;
  // A node id, or for a rest rectangle the complement (~) of the parent's id.
  node: Int32Array;
  // For a rest rectangle, by its index: how many children it stands for.
  rest: Map<number, number>;
}

// The rectangles so far. Loops over them read the arrays anew after reserve().
class Columns {
  length = 0;
  x = new Float64Array(0);
  w = new Float64Array(0);
  node = new Int32Array(0);

  reserve(more: number): void {
    const { x, w, node } = this;
    if (this.length + more <= node.length) return;
    const capacity = 2 * node.length + more;
    this.x = new Float64Array(capacity);
    this.w = new Float64Array(capacity);
    this.node = new Int32Array(capacity);
    this.x.set(x);
    this.w.set(w);
    this.node.set(node);
  }

  // Brings siblings, which come by id, in order: widest first, and by id where widths are equal.
  sort(start: number, end: number): void {
    if (end - start > MANY) {
      this.sortMany(start, end);
      return;
    }
    const { w, node } = this;
    for (let i = start + 1; i < end; i++) {
      const width = w[i];
      const id = node[i];
      let j = i - 1;
      for (; j >= start && w[j] < width; j--) {
        w[j + 1] = w[j];
        node[j + 1] = node[j];
      }
      w[j + 1] = width;
      node[j + 1] = id;
    }
  }

  private sortMany(start: number, end: number): void {
    const w = this.w.slice(start, end);
    const node = this.node.slice(start, end);
    const order = Array.from(node, (_, i) => i).sort((a, b) => w[b] - w[a] || a - b);
    order.forEach((from, i) => {
      this.w[start + i] = w[from];
      this.node[start + i] = node[from];
    });
  }
}

export function layoutGraph(graph: Graph, zoom: number, width: number): Layout {
  const out = new Columns();
  const rest = new Map<number, number>();
  const path = pathTo(graph.tree, zoom);
  const rowStart = path.map((_, row) => row);
  out.reserve(path.length);
  out.node.set(path);
  out.w.fill(width, 0, path.length);
  out.length = path.length;

  const { weight } = graph.values;
  const pixels = weight[zoom] > 0 ? width / weight[zoom] : 0;
  // A row is full when its narrowest frames fill it, and each of the frames above may leave a rest.
  const most = 1 + Math.ceil(width / MIN_WIDTH_PX);
  let from = out.length - 1;
  while (from < out.length) {
    const to = out.length;
    rowStart.push(to);
    out.reserve(most + to - from);
    layoutRow(graph, pixels, out, from, to, rest);
    from = to;
  }

  return {
    zoom,
    width,
    rows: rowStart.length - 1,
    rowStart,
    x: out.x.subarray(0, out.length),
    w: out.w.subarray(0, out.length),
    node: out.node.subarray(0, out.length),
    rest,
  };
}

// The children of one row's rectangles. It runs when nothing is warm yet, before the first picture.
function layoutRow(
  graph: Graph, pixels: number, out: Columns, from: number, to: number, rest: Map<number, number>,
): void {
  const { firstChild, nextSibling } = graph.tree;
  const { weight } = graph.values;
  const { x, w, node } = out;
  const least = MIN_WIDTH_PX / pixels;
  let end = to;
  for (let i = from; i < to; i++) {
    const above = node[i];
    if (above < 0) continue;
    const start = end;
    let left = 0;
    let count = 0;
    for (let child = firstChild[above]; child > 0; child = nextSibling[child]) {
      const value = weight[child];
      if (value >= least) {
        w[end] = value * pixels;
        node[end++] = child;
      } else {
        left += value;
        count++;
      }
    }
    if (end - start > 1) out.sort(start, end);
    let at = x[i];
    for (let k = start; k < end; k++) {
      x[k] = at;
      at += w[k];
    }
    const remainder = left * pixels;
    if (remainder < MIN_REST_PX) continue;
    rest.set(end, count);
    x[end] = at;
    w[end] = remainder;
    node[end++] = ~above;
  }
  out.length = end;
}

// The index of the rectangle at x in a row, or -1.
export function rectangleAt(layout: Layout, row: number, x: number): number {
  if (row < 0 || row >= layout.rows) return -1;
  let low = layout.rowStart[row];
  let high = layout.rowStart[row + 1] - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.x[middle] <= x) low = middle;
    else high = middle - 1;
  }
  // A thin frame is drawn at least a pixel wide, so it is as easy to point at.
  if (low > high || x < layout.x[low] || x > layout.x[low] + Math.max(1, layout.w[low])) return -1;
  return low;
}

// The index of a node's rectangle, or -1 when it is not drawn.
export function rectangleOfNode(layout: Layout, graph: Graph, node: number): number {
  const row = depthOf(graph.tree, node);
  if (row >= layout.rows) return -1;
  for (let i = layout.rowStart[row]; i < layout.rowStart[row + 1]; i++)
    if (layout.node[i] === node) return i;
  return -1;
}
