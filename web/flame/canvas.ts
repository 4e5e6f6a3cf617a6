// SPDX-License-Identifier: Apache-2.0
// Draws the rows of a layout that are in view onto a canvas, at the screen's own resolution. It
// knows nothing of events or of the page around it.

import { Labels } from './labels';
import type { Look } from './colour';
import type { Layout } from './layout';
import type { Graph } from './tree';

export const ROW_HEIGHT = 20;
const TEXT_PADDING = 5;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export interface Scene {
  graph: Graph;
  layout: Layout;
  look: Look;
  name: (func: number) => string;
  // Flags by function, or null when nothing is searched for.
  matched: Uint8Array | null;
  // Where a row begins, in the canvas's own pixels.
  top: (row: number) => number;
  // Rows outside of these are not drawn.
  firstRow: number;
  lastRow: number;
  // Maps a layout's x onto the canvas; 1 and 0 but for a zoom in motion.
  stretch: number;
  shift: number;
}

export class Painter {
  private readonly context: CanvasRenderingContext2D;
  private readonly labels: Labels;
  private width = 0;
  private height = 0;
  private ratio = 1;
  // Labels of the row at hand, drawn after its rectangles to spare changes of colour.
  private readonly texts: { text: string; x: number; ink: string }[] = [];

  constructor(readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d', { alpha: true });
    if (!context) throw new Error('This browser cannot draw on a canvas.');
    this.context = context;
    context.font = FONT;
    this.labels = new Labels((text) => context.measureText(text).width);
  }

  // Sizes are in CSS pixels.
  resize(width: number, height: number): void {
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  clear(background = ''): void {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    if (background === '') return;
    this.context.fillStyle = background;
    this.context.fillRect(0, 0, this.width, this.height);
  }

  clearBox(x: number, y: number, width: number, height: number): void {
    this.context.clearRect(x, y, width, height);
  }

  paint(scene: Scene): void {
    const { context } = this;
    context.font = FONT;
    context.textBaseline = 'middle';
    const zoomRow = scene.graph.tree.depth[scene.layout.zoom];
    const last = Math.min(scene.lastRow, scene.layout.rows - 1);
    for (let row = Math.max(0, scene.firstRow); row <= last; row++) {
      const y = scene.top(row);
      if (y + ROW_HEIGHT <= 0 || y >= this.height) continue;
      // The callers of the zoomed frame stay in sight, but step back.
      context.globalAlpha = row < zoomRow ? 0.55 : 1;
      this.paintRow(scene, row, y);
    }
    context.globalAlpha = 1;
  }

  private paintRow(scene: Scene, row: number, y: number): void {
    const { context, ratio, width, texts } = this;
    const { layout, look, matched, stretch, shift } = scene;
    const { func } = scene.graph.tree;
    const end = layout.rowStart[row + 1];
    const height = ROW_HEIGHT - 1;
    const pixel = 1 / ratio;
    let style = '';
    let drawnTo = -Infinity;
    texts.length = 0;
    for (let i = layout.rowStart[row]; i < end; i++) {
      // Edges snap to device pixels: neighbours meet exactly, whatever the ratio.
      const x0 = Math.round((layout.x[i] * stretch + shift) * ratio) * pixel;
      if (x0 >= width) break;
      let x1 = Math.round(((layout.x[i] + layout.w[i]) * stretch + shift) * ratio) * pixel;
      if (x1 < x0 + pixel) x1 = x0 + pixel;
      if (x1 <= 0 || x1 <= drawnTo) continue;
      drawnTo = x1;
      const node = layout.node[i];
      const dim = matched !== null && (node < 0 || func[node] < 0 || !matched[func[node]]);
      const fill = dim ? look.dimFill : node < 0 ? look.restFill : look.fill(node);
      if (fill !== style) context.fillStyle = style = fill;
      const left = Math.max(0, x0);
      const right = Math.min(width, x1);
      context.fillRect(left, y, right - left - (x1 - x0 > 3 ? pixel : 0), height);
      if (node < 0 || right - left < 20) continue;
      const text = this.labels.fit(scene.name(func[node]), right - left - 2 * TEXT_PADDING);
      if (text !== '')
        texts.push({ text, x: left + TEXT_PADDING, ink: dim ? look.dimInk : look.ink });
    }
    style = '';
    for (const { text, x, ink } of texts) {
      if (ink !== style) context.fillStyle = style = ink;
      context.fillText(text, x, y + height / 2 + 1);
    }
  }
}
