// SPDX-License-Identifier: Apache-2.0
// The sandwich on the page: callers growing upward out of a function, callees hanging below it, and
// beside them the table to choose the function from.

import { makeLook, type PackageColours } from '../colour';
import { make } from '../dom';
import { GraphView, type Direction, type Hit } from './graph';
import { functionName } from '../data/data';
import { TopTable, type TableShown } from './table';
import { formatPercent, formatValue } from '../data/units';
import type { Graph } from '../data/tree';
import type { Sandwich } from '../data/sandwich';

export interface SandwichOptions {
  onPick: (func: number) => void;
  onPickName?: (name: string) => void;
  onRank?: () => void;
  onHover: (graph: Graph, hit: Hit | null, zoom: number, x: number, y: number) => void;
  onSelect: (graph: Graph, node: number, zoom: number) => void;
  onMenu: (func: number, clientX: number, clientY: number) => void;
}

interface Side {
  view: GraphView;
  graph: Graph | null;
  zoom: number;
}

export class SandwichView {
  readonly element: HTMLElement;
  readonly table: TopTable;
  private readonly title = make('h2', { class: 'sandwich-title' });
  private readonly callers: Side;
  private readonly callees: Side;
  private colours: PackageColours | null = null;
  private shown: TableShown | null = null;
  private last: Side;

  constructor(private readonly options: SandwichOptions) {
    this.table = new TopTable({
      label: 'Functions to choose from', compact: true, onPick: options.onPick, onMenu: options.onMenu,
      onPickName: options.onPickName, onRank: options.onRank,
    });
    this.callers = this.side('Callers of the chosen function, as an inverted tree', true);
    this.callees = this.side('Callees of the chosen function', false);
    this.last = this.callees;
    const caption = (text: string, aside: string) => make('div', { class: 'sandwich-caption' },
      make('span', {}, text), make('span', { class: 'quiet' }, aside));
    this.element = make('div', { class: 'sandwich' },
      this.table.element,
      make('div', { class: 'sandwich-graphs' },
        this.title,
        caption('Callers', 'nearest at the bottom'),
        this.callers.view.element,
        caption('Callees', 'nearest at the top'),
        this.callees.view.element));
  }

  private side(label: string, hideRoot: boolean): Side {
    const { options } = this;
    const side: Side = {
      graph: null,
      zoom: 0,
      view: new GraphView({
        label,
        hideRoot,
        name: (func) => (this.shown ? functionName(this.shown.profile, func) : ''),
        onZoom: (node) => this.zoom(side, node),
        onReset: () => this.reset(),
        onHover: (hit, x, y) => side.graph && options.onHover(side.graph, hit, side.zoom, x, y),
        onSelect: (node) => {
          this.last = side;
          if (side.graph) options.onSelect(side.graph, node, side.zoom);
        },
        onMenu: ({ node }, x, y) => {
          if (side.graph && side.graph.tree.func[node] >= 0)
            options.onMenu(side.graph.tree.func[node], x, y);
        },
      }),
    };
    return side;
  }

  destroy(): void {
    this.table.destroy();
    this.callers.view.destroy();
    this.callees.view.destroy();
  }

  show(
    sandwich: Sandwich, unit: string, colours: PackageColours, table: TableShown, note = '',
  ): void {
    const { profile } = table;
    this.colours = colours;
    this.shown = table;
    const total = sandwich.callees.values.total[0];
    this.title.replaceChildren(
      make('span', { class: 'sandwich-name' }, functionName(profile, sandwich.func)),
      make('span', { class: 'quiet' },
        `${formatValue(total, unit)}, ${formatPercent(total / sandwich.callees.whole)} of total`
        + (sandwich.truncated ? '; the deepest levels are omitted' : '')
        + (note === '' ? '' : `. ${note}`)));
    this.fill(this.callers, sandwich.callers);
    this.fill(this.callees, sandwich.callees);
    this.table.show(table);
  }

  // Until all stacks are known, nothing is shown of those that the picture has.
  wait(func: number, note: string, table: TableShown): void {
    this.shown = table;
    this.title.replaceChildren(
      make('span', { class: 'sandwich-name' }, functionName(table.profile, func)),
      make('span', { class: 'quiet' }, note));
    for (const side of [this.callers, this.callees]) {
      side.graph = null;
      side.view.element.hidden = true;
    }
    this.table.show(table);
  }

  private fill(side: Side, graph: Graph): void {
    side.view.element.hidden = false;
    if (side.graph !== graph) side.zoom = 0;
    side.graph = graph;
    this.draw(side);
  }

  private draw(side: Side): void {
    if (!side.graph || !this.colours || !this.shown) return;
    side.view.show({
      graph: side.graph,
      zoom: side.zoom,
      flip: side === this.callers,
      look: makeLook(this.shown.profile, this.shown.type, side.graph, this.colours),
      matched: this.shown.matched,
    });
  }

  private zoom(side: Side, node: number): void {
    if (node === 0) {
      this.reset();
      return;
    }
    side.zoom = node;
    this.draw(side);
  }

  // Back to the whole of both sides. False when there was nothing to do.
  reset(): boolean {
    const zoomed = [this.callers, this.callees].filter((side) => side.zoom !== 0);
    for (const side of zoomed) {
      side.zoom = 0;
      this.draw(side);
    }
    return zoomed.length > 0;
  }

  private focused(): Side | null {
    const at = document.activeElement;
    return [this.callers, this.callees].find((side) => side.view.element === at) ?? null;
  }

  move(direction: Direction): void {
    const side = this.focused();
    if (side) side.view.move(direction);
    else if (direction === 'up') this.table.move(-1);
    else if (direction === 'down') this.table.move(1);
  }

  enter(): void {
    const side = this.focused();
    if (side && side.view.selected >= 0) this.zoom(side, side.view.selected);
    else if (!side && this.table.activeFunction() >= 0)
      this.options.onPick(this.table.activeFunction());
  }

  // The function of the frame selected last, or -1.
  selectedFunction(): number {
    const { graph, view } = this.last;
    return graph && view.selected >= 0 ? graph.tree.func[view.selected] : -1;
  }
}
