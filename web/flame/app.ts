// SPDX-License-Identifier: Apache-2.0
// Puts the parts together: one state, one render that brings every part in line with it, and the
// actions that change it. mount() is the whole interface to a page around it.

import { Breadcrumb } from './breadcrumb';
import { makeLook, PackageColours } from './colour';
import { functionName, type Profile } from './data';
import { Lifetime, make } from './dom';
import { frameFacts } from './facts';
import { GraphView, type Direction, type Hit, type Rectangle } from './graph';
import { Help, listenForKeys, type Command } from './keyboard';
import { Legend } from './legend';
import { Model } from './model';
import { SandwichView } from './sandwich-view';
import { defaultState, type State } from './state';
import { Status } from './status';
import { TopTable, type TableShown } from './table';
import { Theme } from './theme';
import { Toolbar } from './toolbar';
import { Tooltip } from './tooltip';
import { formatPercent, grouped } from './units';
import type { Graph } from './tree';

export interface MountOptions {
  state?: State;
  // Called when a person changed the state; `step` says that it is worth a step of history.
  onState?: (state: State, step: boolean) => void;
  // Where keys are listened for; the document unless told.
  keys?: EventTarget;
}

export interface FlameApp {
  readonly profile: Profile;
  state(): State;
  show(state: State): void;
  // Where a node of the graph view is on the screen, in client pixels; null when it is not drawn.
  rectangleOf(node: number): Rectangle | null;
  destroy(): void;
}

const HINTS: Record<State['view'], string> = {
  graph: 'Click a frame to zoom, move with the arrow keys, or press ? for all keys.',
  table: 'Click a function to see its callers and callees, or press ? for all keys.',
  sandwich: 'Choose a function in the table, click a frame to zoom, or press ? for all keys.',
};

class App implements FlameApp {
  private readonly life = new Lifetime();
  private readonly model: Model;
  private readonly theme: Theme;
  private readonly toolbar: Toolbar;
  private readonly crumbs: Breadcrumb;
  private readonly found = make('span', { class: 'found-line', role: 'status' });
  private readonly trail = make('div', { class: 'trail' });
  private readonly graph: GraphView;
  private readonly table: TopTable;
  private readonly sandwich: SandwichView;
  private readonly empty = make('p', { class: 'empty', hidden: true });
  private readonly status: Status;
  private readonly legend = new Legend();
  private readonly tooltip = new Tooltip();
  private readonly help: Help;
  private readonly root: HTMLElement;
  private readonly panes: Record<State['view'], HTMLElement>;
  private colours: PackageColours;
  private current: State;

  constructor(element: HTMLElement, readonly profile: Profile, private options: MountOptions) {
    this.model = new Model(profile);
    this.current = options.state ?? defaultState(profile);
    this.theme = new Theme(this.life, () => this.render());
    this.colours = new PackageColours(profile, this.theme.scheme);
    const commands = this.commands();
    this.help = new Help(commands);
    this.toolbar = new Toolbar(profile, {
      change: (change) => this.change(change),
      toggleTheme: () => this.theme.toggleDark(),
      toggleSafe: () => this.theme.toggleSafe(),
      help: () => this.help.toggle(),
    });
    this.crumbs = new Breadcrumb(profile, (node) => this.zoom(node));
    this.status = new Status(() => this.openSandwich());
    this.graph = new GraphView({
      label: `Flame graph of ${profile.title}. Arrow keys move between frames and Enter zooms. `
        + 'The table view lists the same data.',
      name: (func) => functionName(profile, func),
      onZoom: (node) => this.zoom(node),
      onReset: () => this.zoom(0),
      onHover: (hit, x, y) => this.hover(this.graphNow(), hit, this.current.zoom, x, y),
      onSelect: (node) => this.describe(this.graphNow(), node, this.current.zoom),
    });
    this.table = new TopTable({
      label: 'Functions', compact: false, onPick: (func) => this.change({ view: 'sandwich', func }),
    });
    this.sandwich = new SandwichView({
      profile,
      onPick: (func) => this.change({ func }),
      onHover: (graph, hit, zoom, x, y) => this.hover(graph, hit, zoom, x, y),
      onSelect: (graph, node, zoom) => this.describe(graph, node, zoom),
    });
    this.panes = {
      graph: this.graph.element, table: this.table.element, sandwich: this.sandwich.element,
    };
    this.root = this.build();
    element.replaceChildren(this.root);
    listenForKeys(this.life, options.keys ?? document, () =>
      this.help.element.open ? commands.filter((c) => /^(Escape|\?)$/.test(c.keys[0])) : commands);
    this.render();
  }

  private build(): HTMLElement {
    const { profile } = this;
    this.trail.append(this.crumbs.element, this.found);
    return make('div', { class: 'flame' },
      this.toolbar.element,
      profile.notes.length > 0
        ? make('ul', { class: 'notes', 'aria-label': 'What the data is worth' },
          ...profile.notes.map((note) => make('li', {}, note)))
        : null,
      this.trail,
      make('main', { class: 'stage' }, ...Object.values(this.panes), this.empty),
      make('footer', { class: 'foot' }, this.status.element, this.legend.element),
      this.tooltip.element,
      this.help.element);
  }

  destroy(): void {
    this.life.end();
    this.graph.destroy();
    this.table.destroy();
    this.sandwich.destroy();
    this.root.remove();
  }

  state(): State {
    return { ...this.current };
  }

  show(state: State): void {
    this.current = { ...state };
    this.render();
  }

  rectangleOf(node: number): Rectangle | null {
    return this.current.view === 'graph' ? this.graph.rectangleOf(node) : null;
  }

  private change(change: Partial<State>): void {
    const before = this.current;
    this.current = { ...before, ...change };
    const step = (['zoom', 'view', 'func', 'type'] as const)
      .some((key) => before[key] !== this.current[key]);
    this.render();
    this.options.onState?.(this.state(), step);
  }

  private graphNow(): Graph {
    return this.model.graph(this.current.type);
  }

  private render(): void {
    const { current, model, profile } = this;
    const { scheme } = this.theme;
    if (scheme.dark !== this.colours.scheme.dark || scheme.safe !== this.colours.scheme.safe)
      this.colours = new PackageColours(profile, scheme);
    this.root.dataset.theme = scheme.dark ? 'dark' : 'light';
    this.root.dataset.palette = scheme.safe ? 'safe' : 'usual';
    this.toolbar.show(current, scheme.dark, scheme.safe);
    for (const [view, pane] of Object.entries(this.panes)) pane.hidden = view !== current.view;
    this.tooltip.hide();

    const graph = this.graphNow();
    const search = model.search(current.search, current.regex);
    const matched = search.matches?.flags ?? null;
    this.empty.hidden = graph.values.weight[0] > 0 || current.view !== 'graph';
    this.empty.textContent = profile.kind === 'diff'
      ? 'The new profile has no values of this type. The table lists what vanished.'
      : 'The profile has no values of this type.';
    // What stands around the view comes first: it decides how much room the view has.
    this.legend.show(profile, current.type, graph, scheme, model.vanished(current.type));
    this.renderFound();
    this.crumbs.element.hidden = current.view !== 'graph';
    this.trail.hidden = current.view !== 'graph' && current.search === '';
    if (current.view === 'graph') {
      this.crumbs.show(current.zoom);
      const look = makeLook(profile, graph, this.colours);
      this.graph.show({ graph, zoom: current.zoom, flip: current.flip, look, matched });
    } else if (current.view === 'table') {
      this.table.show(this.tableShown(graph, matched, current.func));
    } else {
      this.renderSandwich(graph, matched);
    }
    this.renderStatus();
  }

  private tableShown(graph: Graph, matched: Uint8Array | null, picked: number): TableShown {
    const { profile, model, current } = this;
    const values = model.functionValues(current.type);
    return { profile, type: current.type, values, whole: graph.whole, matched, picked };
  }

  private renderSandwich(graph: Graph, matched: Uint8Array | null): void {
    const sandwich = this.model.sandwich(this.current.type, this.current.func);
    if (!sandwich) return;
    this.sandwich.show(sandwich, this.profile.types[this.current.type].unit, this.colours, matched,
      this.tableShown(graph, matched, sandwich.func));
  }

  private renderFound(): void {
    const { current, model } = this;
    const { matches, error } = model.search(current.search, current.regex);
    this.found.classList.toggle('wrong', error !== '');
    if (!matches) {
      this.found.textContent = error;
      this.toolbar.showFound('', error !== '');
      return;
    }
    const { values, whole } = this.graphNow();
    const share = formatPercent(model.matchedTotal(current.type, matches, 0) / whole);
    let line = `${grouped(matches.count)} ${matches.count === 1 ? 'function' : 'functions'} matched: `
      + `${share} of total`;
    if (current.zoom !== 0 && current.view === 'graph') {
      const inside = model.matchedTotal(current.type, matches, current.zoom);
      line += `, ${formatPercent(inside / values.total[current.zoom])} of zoom`;
    }
    this.found.textContent = line;
    this.toolbar.showFound(share, false);
  }

  private renderStatus(): void {
    if (this.current.view === 'graph' && this.graph.selected >= 0)
      this.describe(this.graphNow(), this.graph.selected, this.current.zoom);
    else this.status.clear(HINTS[this.current.view]);
  }

  private factsOf(graph: Graph, hit: Hit, zoom: number) {
    return frameFacts(this.profile, this.profile.types[this.current.type], graph, hit, zoom);
  }

  private describe(graph: Graph, node: number, zoom: number): void {
    this.status.show(
      this.factsOf(graph, { node, rest: 0 }, zoom), graph.tree.func[node] >= 0);
  }

  private hover(graph: Graph, hit: Hit | null, zoom: number, x: number, y: number): void {
    if (hit) this.tooltip.show(this.factsOf(graph, hit, zoom), x, y);
    else this.tooltip.hide();
  }

  private zoom(node: number): void {
    if (node !== this.current.zoom || this.current.view !== 'graph')
      this.change({ zoom: node, view: 'graph' });
  }

  // The function that a person points at in the view at hand, or -1.
  private pointedFunction(): number {
    if (this.current.view === 'table') return this.table.activeFunction();
    if (this.current.view === 'sandwich') return this.sandwich.selectedFunction();
    const { selected } = this.graph;
    return selected >= 0 ? this.profile.tree.func[selected] : -1;
  }

  private openSandwich(): void {
    const func = this.pointedFunction();
    if (func >= 0) this.change({ view: 'sandwich', func });
    else this.change({ view: this.current.view === 'sandwich' ? 'graph' : 'sandwich' });
  }

  private move(direction: Direction): void {
    const { view } = this.current;
    if (view === 'graph') this.graph.move(direction);
    else if (view === 'sandwich') this.sandwich.move(direction);
    else if (direction === 'up') this.table.move(-1);
    else if (direction === 'down') this.table.move(1);
  }

  private enter(): void {
    const { view } = this.current;
    if (view === 'graph' && this.graph.selected >= 0) this.zoom(this.graph.selected);
    else if (view === 'sandwich') this.sandwich.enter();
    else if (view === 'table' && this.table.activeFunction() >= 0) this.openSandwich();
  }

  private escape(): void {
    const { view, zoom, search } = this.current;
    const typing = document.activeElement === this.toolbar.search;
    if (this.help.element.open) this.help.element.close();
    else if (typing && search !== '') this.change({ search: '' });
    else if (typing) this.focusView();
    else if (view === 'sandwich' && this.sandwich.reset()) return;
    else if (view === 'graph' && zoom !== 0) this.zoom(0);
    else if (search !== '') this.change({ search: '' });
  }

  private focusView(): void {
    if (this.current.view === 'graph') this.graph.element.focus();
    else if (this.current.view === 'table') this.table.element.focus();
    else this.sandwich.table.element.focus();
  }

  private view(view: State['view']): void {
    this.change({ view: this.current.view === view ? 'graph' : view });
    this.focusView();
  }

  private commands(): Command[] {
    const { tree, types } = this.profile;
    return [
      { keys: ['/'], help: 'search functions', run: () => this.toolbar.search.select() },
      { keys: ['ArrowUp'], shown: '↑ ↓ ← →', help: 'move the selection',
        run: () => this.move('up') },
      { keys: ['ArrowDown'], shown: '', help: '', run: () => this.move('down') },
      { keys: ['ArrowLeft'], shown: '', help: '', run: () => this.move('left') },
      { keys: ['ArrowRight'], shown: '', help: '', run: () => this.move('right') },
      { keys: ['Enter'], help: 'zoom to the selected frame, or open the selected function',
        run: () => this.enter() },
      { keys: ['Backspace', 'u'], shown: 'u', help: 'zoom out by one frame',
        run: () => this.zoom(Math.max(0, tree.parent[this.current.zoom])) },
      { keys: ['Escape'], shown: 'Esc', help: 'back to the whole graph, then clear the search',
        typing: true, run: () => this.escape() },
      { keys: ['s'], help: 'sandwich: callers and callees of the selected function',
        run: () => this.openSandwich() },
      { keys: ['t'], help: 'table of functions, and back', run: () => this.view('table') },
      { keys: ['g'], help: 'graph', run: () => this.view('graph') },
      { keys: ['m'], help: 'next sample type',
        run: () => this.change({ type: (this.current.type + 1) % types.length }) },
      { keys: ['f'], help: 'flip: root at the bottom or at the top',
        run: () => this.change({ flip: !this.current.flip }) },
      { keys: ['d'], help: 'dark or light', run: () => this.theme.toggleDark() },
      { keys: ['c'], help: 'colour-blind safe colours', run: () => this.theme.toggleSafe() },
      { keys: ['?'], help: 'this help', run: () => this.help.toggle() },
    ];
  }
}

export function mount(
  element: HTMLElement, profile: Profile, options: MountOptions = {},
): FlameApp {
  return new App(element, profile, options);
}
