// SPDX-License-Identifier: Apache-2.0
// Turns a graph and a zoomed node into rectangles, row by row. Children come widest first, so a
// row ends at the first child too narrow to see: the work follows what is visible, not the size
// of the graph. What was left out becomes one "rest" rectangle, so that no space lies.

import { pathTo, sortChildren, type Graph } from './tree';

export const MIN_WIDTH_PX = 0.3;
const MIN_REST_PX = 1;

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

class Columns {
  length = 0;
  x = new Float64Array(4096);
  w = new Float64Array(4096);
  node = new Int32Array(4096);

  push(x: number, w: number, node: number): void {
    if (this.length === this.node.length) this.grow();
    this.x[this.length] = x;
    this.w[this.length] = w;
    this.node[this.length++] = node;
  }

  private grow(): void {
    const { x, w, node } = this;
    this.x = new Float64Array(2 * x.length);
    this.w = new Float64Array(2 * w.length);
    this.node = new Int32Array(2 * node.length);
    this.x.set(x);
    this.w.set(w);
    this.node.set(node);
  }
}

export function layoutGraph(
  graph: Graph, zoom: number, width: number, minWidth = MIN_WIDTH_PX,
): Layout {
  const out = new Columns();
  const rest = new Map<number, number>();
  const rowStart: number[] = [];
  for (const node of pathTo(graph.tree, zoom)) {
    rowStart.push(out.length);
    out.push(0, width, node);
  }

  const { childStart } = graph.tree;
  const { weight } = graph.values;
  const pixels = weight[zoom] > 0 ? width / weight[zoom] : 0;
  let from = out.length - 1;
  let to = out.length;
  while (from < to) {
    rowStart.push(to);
    for (let i = from; i < to; i++) {
      const node = out.node[i];
      if (node < 0) continue;
      const start = childStart[node];
      const end = childStart[node + 1];
      if (start === end) continue;
      sortChildren(graph, node);
      let x = out.x[i];
      let k = start;
      for (; k < end; k++) {
        const child = graph.children[k];
        const w = weight[child] * pixels;
        if (!(w >= minWidth)) break;
        out.push(x, w, child);
        x += w;
      }
      if (k === end) continue;
      let left = 0;
      for (let j = k; j < end; j++) left += weight[graph.children[j]];
      if (left * pixels >= MIN_REST_PX) {
        rest.set(out.length, end - k);
        out.push(x, left * pixels, ~node);
      }
    }
    from = to;
    to = out.length;
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
  const row = graph.tree.depth[node];
  if (row >= layout.rows) return -1;
  for (let i = layout.rowStart[row]; i < layout.rowStart[row + 1]; i++)
    if (layout.node[i] === node) return i;
  return -1;
}
