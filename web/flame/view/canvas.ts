// SPDX-License-Identifier: Apache-2.0
// Draws the rows of a layout that are in view onto a canvas, at the screen's own resolution. It
// knows nothing of events or of the page around it.

import { Labels } from '../data/labels';
import { Strips } from './strips';
import type { Look } from '../colour';
import type { Layout } from '../data/layout';
import { depthOf, type Graph } from '../data/tree';

export const ROW_HEIGHT = 20;
const TEXT_PADDING = 5;
// A rectangle narrower than this has no label.
const LABEL_PX = 20;
const FONT = '12px system-ui, sans-serif';

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
  private readonly strips = new Strips();
  // Drawn after the rectangles.
  private readonly texts: { text: string; x: number; y: number; ink: string; alpha: number }[] = [];

  constructor(readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d', { alpha: true });
    if (!context) throw new Error('This browser cannot draw on a canvas.');
    this.context = context;
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
    const { context, strips, texts, ratio } = this;
    context.font = FONT; // a canvas that changed its size has forgotten it
    const zoomRow = depthOf(scene.graph.tree, scene.layout.zoom);
    const last = Math.min(scene.lastRow, scene.layout.rows - 1);
    const tops: number[] = [];
    const rows: number[] = [];
    for (let row = Math.max(0, scene.firstRow); row <= last; row++) {
      const y = scene.top(row);
      if (y + ROW_HEIGHT <= 0 || y >= this.height) continue;
      rows.push(row);
      tops.push(y);
    }
    if (rows.length === 0) return;
    texts.length = 0;
    strips.begin(this.canvas.width, rows.length);
    // The callers of the zoomed frame stay in sight, but step back.
    rows.forEach((row, i) => this.fillRow(scene, row, i, tops[i], row < zoomRow ? 0.55 : 1));
    strips.end(rows.length);
    context.imageSmoothingEnabled = false;
    tops.forEach((y, i) => strips.draw(context, i, y, this.canvas.width / ratio, ROW_HEIGHT - 1));
    this.paintTexts();
  }

  private fillRow(scene: Scene, row: number, strip: number, y: number, alpha: number): void {
    const { ratio, strips } = this;
    const pixels = this.canvas.width;
    const { layout, look, matched } = scene;
    const { func } = scene.graph.tree;
    const { x, w, node: nodes } = layout;
    const scale = scene.stretch * ratio;
    const offset = scene.shift * ratio;
    const gapped = 3 * ratio;
    const labelled = LABEL_PX * ratio;
    const end = layout.rowStart[row + 1];
    let drawnTo = 0;
    for (let i = layout.rowStart[row]; i < end; i++) {
      // Edges snap to device pixels: neighbours meet exactly, whatever the ratio.
      const left = x[i] * scale + offset;
      const x0 = Math.round(left);
      if (x0 >= pixels) break;
      const x1 = Math.max(x0 + 1, Math.round(left + w[i] * scale));
      if (x1 <= drawnTo) continue;
      drawnTo = x1;
      const node = nodes[i];
      const dim = matched !== null && (node < 0 || func[node] < 0 || !matched[func[node]]);
      const from = Math.max(0, x0);
      const to = Math.min(pixels, x1);
      strips.fill(strip, from, x1 - x0 > gapped ? to - 1 : to,
        dim ? look.dimFill : node < 0 ? look.restFill : look.fill(node), alpha);
      if (node < 0 || to - from < labelled) continue;
      const text = this.labels.fit(scene.name(func[node]), (to - from) / ratio - 2 * TEXT_PADDING);
      if (text !== '')
        this.texts.push({
          text, x: from / ratio + TEXT_PADDING, y, ink: dim ? look.dimInk : look.ink, alpha,
        });
    }
  }

  private paintTexts(): void {
    const { context } = this;
    context.textBaseline = 'middle';
    let style = '';
    for (const { text, x, y, ink, alpha } of this.texts) {
      if (ink !== style) context.fillStyle = style = ink;
      context.globalAlpha = alpha;
      context.fillText(text, x, y + ROW_HEIGHT / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }
}
