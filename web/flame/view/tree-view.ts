// SPDX-License-Identifier: Apache-2.0
// The call tree as rows that open and close, with self and total beside them: for reading a path
// frame by frame, by keyboard and by screen reader.

import { numberCell } from './cells';
import { fitColumns, makeColumns, type Column } from '../data/columns';
import { icon, Lifetime, make } from '../dom';
import { functionName, functionOf, originOf, type Profile } from '../data/data';
import { nameCell } from './name-cell';
import { MAX_ROWS, Rows } from './rows';
import { childrenOf, depthOf, type Graph } from '../data/tree';

export interface TreeOptions {
  onOpen: (open: number[]) => void;
  // Nothing is below it, and somebody wants to see more.
  onLeaf: (node: number) => void;
  onSelect: (node: number) => void;
  onMenu: (node: number, clientX: number, clientY: number) => void;
}

export interface TreeShown {
  profile: Profile;
  type: number;
  graph: Graph;
  zoom: number;
  // null opens the heaviest path.
  open: readonly number[] | null;
  matched: Uint8Array | null;
}

const INDENT_PX = 14;
const MAX_INDENT_PX = 420;
const TOGGLE_PX = 20;
// A path is followed down while most of its value goes one way.
const HEAVY_SHARE = 0.5;
const CHEVRON = 'M6 4l4 4-4 4';

// From a node down along its heaviest children.
export function heavyPath(graph: Graph, node: number): number[] {
  const { firstChild } = graph.tree;
  const { weight } = graph.values;
  const path: number[] = [];
  for (let n = node; firstChild[n] > 0;) {
    path.push(n);
    const [child] = childrenOf(graph, n);
    if (weight[child] < HEAVY_SHARE * weight[n] || path.length > 64) break;
    n = child;
  }
  return path;
}

// The nodes that are in sight when these are open, a caller before its callees, the widest first.
export function visibleNodes(graph: Graph, root: number, open: ReadonlySet<number>): number[] {
  const out: number[] = [];
  const stack = [root];
  while (stack.length > 0 && out.length < MAX_ROWS) {
    const node = stack.pop()!;
    out.push(node);
    if (open.has(node)) for (const child of childrenOf(graph, node).reverse()) stack.push(child);
  }
  return out;
}

export class TreeView {
  readonly element: HTMLElement;
  private readonly head = make('div', { class: 'table-head', role: 'row', 'aria-rowindex': 1 });
  private readonly space = make('div', { class: 'table-space', role: 'rowgroup' });
  private readonly life = new Lifetime();
  private readonly rows: Rows;
  private shown: TreeShown | null = null;
  private open = new Set<number>();
  private nodes: number[] = [];
  private columns: Column[] = [];
  private room = 0;

  constructor(private readonly options: TreeOptions) {
    this.element = make('div', {
      class: 'table call-tree', role: 'treegrid', tabindex: 0, 'aria-label': 'Call tree',
    }, this.head, this.space);
    this.rows = new Rows(this.element, this.space, this.head, this.life, (index) => this.row(index));
    const observer = new ResizeObserver(() => this.rebuild());
    observer.observe(this.element);
    this.life.onEnd(() => observer.disconnect());
    this.life.listen<MouseEvent>(this.space, 'click', (event) => {
      const index = Rows.at(event);
      if (index < 0) return;
      this.activate(index);
      if ((event.target as Element).closest('.tree-toggle') || event.detail === 2) this.toggle(index);
    });
    this.life.listen<MouseEvent>(this.space, 'contextmenu', (event) => {
      const index = Rows.at(event);
      if (index < 0) return;
      event.preventDefault();
      this.activate(index);
      options.onMenu(this.nodes[index], event.clientX, event.clientY);
    });
  }

  destroy(): void {
    this.life.end();
    this.element.remove();
  }

  show(shown: TreeShown): void {
    const selected = this.selected();
    const same = this.shown?.graph === shown.graph;
    this.shown = shown;
    this.open = new Set(shown.open ?? heavyPath(shown.graph, shown.zoom));
    this.rebuild();
    this.rows.active = same ? this.nodes.indexOf(selected) : -1;
    this.rows.render();
  }

  private rebuild(): void {
    const { shown } = this;
    if (!shown || this.element.clientWidth === 0) return;
    const { graph, profile, type } = shown;
    const findings = profile.findings[type];
    const { columns, narrow, room } = fitColumns(this.element,
      makeColumns(graph.values, profile.types[type].unit, graph.whole,
        (node) => findings.get(graph.tree.func[node])), false);
    this.columns = columns;
    this.room = room;
    const cell = (text: string) =>
      make('div', { role: 'columnheader', class: 'table-cell table-title' }, text);
    this.head.replaceChildren(cell('Call tree'),
      ...this.columns.map((column) => cell(narrow ? column.short : column.label)));
    this.nodes = visibleNodes(graph, shown.zoom, this.open);
    this.rows.resize(this.nodes.length);
    this.rows.render();
  }

  private hasChildren(node: number): boolean {
    return this.shown!.graph.tree.firstChild[node] > 0;
  }

  private row(index: number): HTMLElement {
    const { profile, graph, zoom, matched } = this.shown!;
    const node = this.nodes[index];
    const func = graph.tree.func[node];
    const level = depthOf(graph.tree, node) - depthOf(graph.tree, zoom);
    const toggle = make('span', { class: 'tree-toggle', 'aria-hidden': 'true' });
    const inner = this.hasChildren(node);
    if (inner) toggle.append(icon(CHEVRON));
    const indent = Math.min(MAX_INDENT_PX, level * INDENT_PX);
    const label = nameCell(toggle, functionName(profile, func),
      func < 0 ? '' : originOf(functionOf(profile, func)), this.room - indent - TOGGLE_PX);
    label.style.paddingLeft = `${8 + indent}px`;
    const row = make('div', { class: 'table-row', role: 'row', 'aria-level': level + 1 },
      label, ...this.columns.map((column) => numberCell(column, node)));
    if (inner) row.setAttribute('aria-expanded', String(this.open.has(node)));
    if (matched && func >= 0) row.classList.toggle('matched', matched[func] === 1);
    return row;
  }

  private activate(index: number): void {
    this.rows.go(index);
    this.options.onSelect(this.nodes[index]);
  }

  private toggle(index: number): void {
    const node = this.nodes[index];
    if (!this.hasChildren(node)) {
      this.options.onLeaf(node);
      return;
    }
    if (this.open.has(node)) this.open.delete(node);
    else for (const one of heavyPath(this.shown!.graph, node)) this.open.add(one);
    this.options.onOpen([...this.open]);
  }

  // Left closes, or goes to the caller; right opens, or goes to the first callee.
  move(direction: 'up' | 'down' | 'left' | 'right'): void {
    const { active } = this.rows;
    if (direction === 'up') this.rows.move(-1);
    else if (direction === 'down') this.rows.move(1);
    else if (active < 0) this.rows.move(1);
    else {
      const node = this.nodes[active];
      const isOpen = this.open.has(node) && this.hasChildren(node);
      if ((direction === 'right') !== isOpen && (isOpen || direction === 'right')) this.toggle(active);
      else if (direction === 'right') this.rows.move(1);
      else {
        const caller = this.nodes.indexOf(this.shown!.graph.tree.parent[node]);
        if (caller >= 0) this.rows.go(caller);
      }
    }
    if (this.rows.active >= 0) this.options.onSelect(this.nodes[this.rows.active]);
  }

  enter(): void {
    if (this.rows.active >= 0) this.toggle(this.rows.active);
  }

  selected(): number {
    return this.rows.active >= 0 ? this.nodes[this.rows.active] : -1;
  }
}
