// SPDX-License-Identifier: Apache-2.0
// One graph on the page: a scrolling box with a canvas as tall as the box, whatever the depth of
// the graph. It turns pointers and keys into hover, selection and zoom, and asks its owner to act.

import { Painter, ROW_HEIGHT, type Scene } from './canvas';
import { Lifetime, make } from '../dom';
import { layoutGraph, rectangleAt, rectangleOfNode, type Layout } from '../data/layout';
import { poseAt, startMotion, type Motion } from './motion';
import type { Look } from '../colour';
import { depthOf, type Graph } from '../data/tree';

export interface GraphOptions {
  label: string;
  // The root's row is shown elsewhere.
  hideRoot?: boolean;
  name: (func: number) => string;
  onZoom: (node: number) => void;
  onReset: () => void;
  onHover: (hit: Hit | null, clientX: number, clientY: number) => void;
  onSelect: (node: number) => void;
  onMenu?: (hit: Hit, clientX: number, clientY: number) => void;
}

// A frame, or the rest of one: `rest` frames too narrow to draw, called by `node`.
export interface Hit {
  node: number;
  rest: number;
}

export interface Shown {
  graph: Graph;
  zoom: number;
  flip: boolean;
  look: Look;
  matched: Uint8Array | null;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Direction = 'up' | 'down' | 'left' | 'right';

const PRINT_HEIGHT_PX = 4000;

export class GraphView {
  readonly element: HTMLElement;
  selected = -1;
  private readonly space = make('div', { class: 'graph-space' });
  private readonly hoverBox = make('div', { class: 'graph-box graph-hover', hidden: true });
  private readonly selectBox = make('div', { class: 'graph-box graph-select', hidden: true });
  private readonly painter: Painter;
  private readonly life = new Lifetime();
  private shown: Shown | null = null;
  private layout: Layout | null = null;
  private motion: Motion | null = null;
  private width = 0;
  private height = 0;
  private gutter = 0;
  private printing = false;
  private hovered = -1;
  private frame = 0;
  private touched = -1;

  constructor(private readonly options: GraphOptions) {
    const canvas = make('canvas', { class: 'graph-canvas' });
    this.painter = new Painter(canvas);
    this.space.append(canvas, this.hoverBox, this.selectBox);
    this.element = make('div', {
      class: 'graph', tabindex: 0, role: 'application', 'aria-label': options.label,
    }, this.space);
    this.listen();
  }

  private listen(): void {
    const { life, element, space } = this;
    const observer = new ResizeObserver(() => this.measure());
    observer.observe(element);
    life.onEnd(() => observer.disconnect());
    life.onEnd(() => cancelAnimationFrame(this.frame));
    life.listen(element, 'scroll', () => this.repaint(), { passive: true });
    life.listen<PointerEvent>(space, 'pointermove', (e) => {
      if (e.pointerType !== 'touch') this.hover(this.indexAt(e.clientX, e.clientY), e);
    });
    life.listen<PointerEvent>(space, 'pointerleave', (e) => this.hover(-1, e));
    life.listen<PointerEvent>(space, 'click', (e) => this.click(e));
    life.listen(space, 'dblclick', () => this.options.onReset());
    life.listen<PointerEvent>(space, 'contextmenu', (e) => this.menu(e));
    life.listen(window, 'beforeprint', () => this.print(true));
    life.listen(window, 'afterprint', () => this.print(false));
  }

  destroy(): void {
    this.life.end();
    this.element.remove();
  }

  show(shown: Shown): void {
    const before = this.shown;
    const layout = this.layout;
    this.shown = shown;
    if (before?.graph !== shown.graph) this.selected = -1;
    this.relayout();
    this.motion = null;
    if (before?.graph === shown.graph && layout && this.layout
      && !window.matchMedia('(prefers-reduced-motion: reduce)').matches)
      this.motion = startMotion(shown.graph, layout, this.layout, performance.now());
    if (before ? before.flip !== shown.flip || before.graph !== shown.graph : shown.flip)
      this.element.scrollTop = shown.flip ? this.element.scrollHeight : 0;
    this.hover(-1, null);
    this.placeSelection();
    // The first picture does not wait for a frame to begin, nor for the page to say where it is scrolled to.
    if (before) this.repaint();
    else if (shown.flip || this.printing) this.paint();
    else this.paintPart(0, this.height);
  }

  // Sizes come from the box; a hidden box has none and is measured when it appears.
  private measure(): void {
    if (this.printing) return;
    this.placeScrollbar();
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (width === 0 || height === 0) return;
    if (width === this.width && height === this.height && this.layout) return;
    // With the root at the bottom, what stays in place is the distance to the bottom.
    const below = this.contentHeight() - this.element.scrollTop - this.height;
    this.width = width;
    this.height = height;
    this.motion = null;
    this.relayout();
    if (this.shown?.flip) this.element.scrollTop = this.contentHeight() - below - height;
    this.placeSelection();
    this.paint();
  }

  // The scrollbar goes into the margin beside the box, so that the frames align with what is above.
  private placeScrollbar(): void {
    const gutter = this.element.offsetWidth - this.element.clientWidth;
    if (gutter !== this.gutter) this.element.style.marginRight = `${-gutter}px`;
    this.gutter = gutter;
  }

  private relayout(): void {
    if (this.width === 0) {
      this.placeScrollbar();
      this.width = this.element.clientWidth;
      this.height = this.element.clientHeight;
    }
    if (!this.shown || this.width === 0) return;
    this.layout = layoutGraph(this.shown.graph, this.shown.zoom, this.width);
    this.space.style.height = `${this.contentHeight()}px`;
  }

  private get skippedRows(): number {
    return this.options.hideRoot ? 1 : 0;
  }

  private contentHeight(): number {
    const rows = (this.layout?.rows ?? 0) - this.skippedRows;
    return Math.max(rows * ROW_HEIGHT, this.height);
  }

  private top(row: number): number {
    const line = row - this.skippedRows;
    return this.shown?.flip ? this.contentHeight() - (line + 1) * ROW_HEIGHT : line * ROW_HEIGHT;
  }

  private rowAt(y: number): number {
    const line = Math.floor((this.shown?.flip ? this.contentHeight() - y : y) / ROW_HEIGHT);
    return line + this.skippedRows;
  }

  private repaint(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.layout) return;
    if (!this.printing) {
      this.paintPart(this.element.scrollTop, this.height);
      return;
    }
    // On paper there is no scrolling: the whole graph, up to a limit, in one piece.
    const rows = this.layout.rows - this.skippedRows;
    const height = Math.min(PRINT_HEIGHT_PX, rows * ROW_HEIGHT);
    this.paintPart(this.shown?.flip ? this.contentHeight() - height : 0, height);
  }

  private paintPart(scrollTop: number, height: number): void {
    const { layout, shown, painter, motion } = this;
    if (!layout || !shown) return;
    painter.resize(this.width, height);
    painter.clear();
    const scene: Scene = {
      ...shown,
      layout,
      name: this.options.name,
      top: (row) => this.top(row) - scrollTop,
      firstRow: this.skippedRows,
      lastRow: Infinity,
      stretch: 1,
      shift: 0,
    };
    if (motion) this.paintMotion(scene, motion);
    else painter.paint(scene);
  }

  private paintMotion(scene: Scene, motion: Motion): void {
    const pose = poseAt(motion, performance.now());
    if (pose.done) {
      this.motion = null;
      this.painter.paint(scene);
      return;
    }
    const row = depthOf(scene.graph.tree, motion.deep.zoom);
    const edge = scene.top(row);
    this.painter.paint({
      ...scene, layout: motion.wide, stretch: pose.wideStretch, shift: pose.wideShift,
    });
    const [y, tall] = scene.top(row + 1) > edge
      ? [edge, this.height - edge] : [0, edge + ROW_HEIGHT];
    this.painter.clearBox(pose.left, y, pose.width, tall);
    this.painter.paint({
      ...scene, layout: motion.deep, firstRow: row, stretch: pose.deepStretch, shift: pose.left,
    });
    this.repaint();
  }

  private print(on: boolean): void {
    this.printing = on;
    this.motion = null;
    this.paint();
  }

  private indexAt(clientX: number, clientY: number): number {
    if (!this.layout || !this.shown) return -1;
    const box = this.space.getBoundingClientRect();
    const row = this.rowAt(clientY - box.top);
    if (row < this.skippedRows) return -1;
    return rectangleAt(this.layout, row, clientX - box.left);
  }

  private hitOf(index: number): Hit | null {
    if (index < 0 || !this.layout) return null;
    const node = this.layout.node[index];
    return node >= 0
      ? { node, rest: 0 } : { node: ~node, rest: this.layout.rest.get(index) ?? 0 };
  }

  private hover(index: number, event: PointerEvent | null): void {
    if (index !== this.hovered) {
      this.hovered = index;
      this.place(this.hoverBox, index);
    }
    this.options.onHover(this.hitOf(index), event?.clientX ?? 0, event?.clientY ?? 0);
  }

  private click(event: PointerEvent): void {
    // The second click of a double click belongs to the double click.
    if (event.detail > 1 || event.button !== 0) return;
    const hit = this.hitOf(this.indexAt(event.clientX, event.clientY));
    if (!hit) return;
    this.select(hit.node);
    // A finger cannot hover: its first tap shows what a frame is, its second zooms.
    if (event.pointerType === 'touch' && this.touched !== hit.node) {
      this.touched = hit.node;
      return;
    }
    this.options.onZoom(hit.node);
  }

  private menu(event: PointerEvent): void {
    const hit = this.hitOf(this.indexAt(event.clientX, event.clientY));
    if (!hit || !this.options.onMenu) return;
    event.preventDefault();
    this.select(hit.node);
    this.hover(-1, null);
    this.options.onMenu(hit, event.clientX, event.clientY);
  }

  // The whole graph as it is zoomed, up to a limit, on a canvas of its own.
  picture(background: string): HTMLCanvasElement | null {
    const { layout, shown } = this;
    if (!layout || !shown) return null;
    const canvas = make('canvas');
    const painter = new Painter(canvas);
    const rows = layout.rows - this.skippedRows;
    const height = Math.min(PRINT_HEIGHT_PX, rows * ROW_HEIGHT);
    const below = this.contentHeight() - height;
    painter.resize(this.width, height);
    painter.clear(background);
    painter.paint({
      ...shown, layout, name: this.options.name, firstRow: this.skippedRows, lastRow: Infinity,
      stretch: 1, shift: 0, top: (row) => this.top(row) - (shown.flip ? below : 0),
    });
    return canvas;
  }

  select(node: number): void {
    this.selected = node;
    this.placeSelection();
    this.options.onSelect(node);
  }

  private placeSelection(): void {
    const { layout, shown, selected } = this;
    this.place(this.selectBox,
      layout && shown && selected >= 0 ? rectangleOfNode(layout, shown.graph, selected) : -1);
  }

  private rowOf(index: number): number {
    const { rowStart } = this.layout!;
    let low = 0;
    let high = this.layout!.rows - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (rowStart[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private place(box: HTMLElement, index: number): void {
    const row = index >= 0 ? this.rowOf(index) : -1;
    box.hidden = row < this.skippedRows;
    if (box.hidden) return;
    box.style.left = `${this.layout!.x[index]}px`;
    box.style.width = `${Math.max(2, this.layout!.w[index])}px`;
    box.style.top = `${this.top(row)}px`;
  }

  // Moves the selection the way it looks: with the root at the bottom, up goes to a callee.
  move(direction: Direction): void {
    const { layout, shown } = this;
    if (!layout || !shown) return;
    let index = this.selected >= 0 ? rectangleOfNode(layout, shown.graph, this.selected) : -1;
    if (index < 0) {
      index = rectangleOfNode(layout, shown.graph, shown.zoom);
      // A hidden root cannot be selected; its first child can.
      if (this.skippedRows > 0 && shown.zoom === 0) index = this.childOf(index);
    } else if (direction === 'left' || direction === 'right') {
      index = this.beside(index, direction === 'left' ? -1 : 1);
    } else if ((direction === 'down') === !shown.flip) {
      index = this.childOf(index);
    } else {
      const parent = shown.graph.tree.parent[layout.node[index]];
      index = parent >= this.skippedRows ? rectangleOfNode(layout, shown.graph, parent) : -1;
    }
    if (index < 0) return;
    this.select(layout.node[index]);
    this.reveal(this.rowOf(index));
  }

  private beside(index: number, step: number): number {
    const layout = this.layout!;
    const row = this.rowOf(index);
    let next = index + step;
    while (layout.node[next] < 0) next += step;
    return next >= layout.rowStart[row] && next < layout.rowStart[row + 1] ? next : -1;
  }

  private childOf(index: number): number {
    const layout = this.layout!;
    const row = this.rowOf(index) + 1;
    if (row >= layout.rows) return -1;
    const child = rectangleAt(layout, row, layout.x[index] + 1e-6);
    const { parent } = this.shown!.graph.tree;
    return child >= 0 && layout.node[child] >= 0
      && parent[layout.node[child]] === layout.node[index] ? child : -1;
  }

  private reveal(row: number): void {
    const top = this.top(row);
    const { scrollTop } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + this.height)
      this.element.scrollTop = top + ROW_HEIGHT - this.height;
  }

  // Where a node is on the screen, in client pixels; null when it is not drawn.
  rectangleOf(node: number): Rectangle | null {
    const { layout, shown } = this;
    if (!layout || !shown || node < 0 || node >= shown.graph.tree.size) return null;
    const index = rectangleOfNode(layout, shown.graph, node);
    if (index < 0 || this.rowOf(index) < this.skippedRows) return null;
    const box = this.space.getBoundingClientRect();
    return {
      x: box.left + layout.x[index],
      y: box.top + this.top(this.rowOf(index)),
      width: layout.w[index],
      height: ROW_HEIGHT,
    };
  }
}
