// SPDX-License-Identifier: Apache-2.0
// Puts the parts together: one state, one render that brings every part in line with it, and the
// actions that change it. mount() is the whole interface to a page around it.

import { Breadcrumb } from './controls/breadcrumb';
import { Chips } from './controls/chips';
import { makeLook, PackageColours } from './colour';
import { commandsOf, type Controls } from './controls/commands';
import { functionName, type Profile } from './data/data';
import { copyText, Lazy, Lifetime, make } from './dom';
import { frameFacts } from './controls/facts';
import { frameItems, type Frame, type FrameActions } from './controls/frame-menu';
import { isOther } from './data/graft';
import { GraphView, type Direction, type Hit, type Rectangle } from './view/graph';
import { Help, listenForKeys } from './controls/keyboard';
import { cutWords, Legend } from './controls/legend';
import { Menu } from './controls/menu';
import { Model } from './data/model';
import { SandwichView } from './view/sandwich-view';
import type { FunctionValues } from './data/functions';
import type { Sandwich } from './data/sandwich';
import { defaultState, transformed, type ColourBy, type State, type View } from './state';
import type { StateTotals } from './data/states';
import { Status } from './controls/status';
import { FIRST_ROWS, TopTable, type Ranked, type Ranking, type TableShown } from './view/table';
import { Theme } from './theme';
import { TimeView } from './view/time-view';
import { Toolbar } from './controls/toolbar';
import { Tooltip } from './controls/tooltip';
import { ALL_LIBRARIES, derived, NO_LIBRARIES, type Transform } from './data/transform';
import { pathTo, type Graph } from './data/tree';
import { TreeView } from './view/tree-view';
import { formatPercent, grouped } from './data/units';

export interface MountOptions {
  state?: State;
  // Called when a person changed the state; `step` says that it is worth a step of history.
  onState?: (state: State, step: boolean) => void;
  // Where keys are listened for; the document unless told.
  keys?: EventTarget;
  // A page with a theme of its own lends it; its switches and its title are then the page's, too.
  theme?: Theme;
  // Names are as in the profile: hostile.
  onOpenFunction?: (name: string) => void;
  // What else the page can do with a function.
  actions?: [label: string, run: (name: string) => void][];
  // Asks for what is folded into "(other)" below the frame that these names lead to.
  onExpand?: (path: string[]) => void;
  // Whether the page can say which part of the profile was in which state, when colours ask for it.
  states?: () => boolean;
  // The labels by which the page can split the tree; none where it can't.
  splits?: () => string[];
  // Who has all stacks, where the profile has "(other)" for some; calls back when there is news.
  exact?: (changed: () => void) => ExactViews;
  // Where the keyboard was in the one that this one replaces.
  focus?: Focus | null;
}

// What is looked at.
export interface Seen {
  source: Profile;
  // The source with what is hidden or collapsed taken out.
  profile: Profile;
  state: State;
  whole: number;
  wholeBase: number;
}

export interface Found {
  count: number;
  matched: number;
  // Of that, below the frame that is zoomed to, when it is known.
  inside: number | null;
  // Why there is nothing to say yet; '' when there is.
  note: string;
}

// A function's callers and callees.
export interface Around {
  shown: { profile: Profile; sandwich: Sandwich } | null;
  // Why there is nothing to show yet; '' when nobody can be asked.
  note: string;
}

// Numbers of all stacks (exact.ts).
export interface ExactViews {
  ranked: (seen: Seen, ranking: Ranking) => { values: FunctionValues; ranked: Ranked };
  found: (seen: Seen, ranking: Ranking) => Found;
  sandwich: (seen: Seen, func: number) => Around;
  // Whose functions the nodes of a sandwich's graph have; null for others.
  profileOf: (graph: Graph) => Profile | null;
  end: () => void;
}

// A field with what is selected in it, or the view.
export type Focus = 'view' | readonly [from: number, to: number];

export interface FlameApp {
  // The tree as it is shown: with what is hidden or collapsed taken out.
  readonly profile: Profile;
  state(): State;
  show(state: State): void;
  // Where a node of the graph view is on the screen, in client pixels; null when it is not drawn.
  rectangleOf(node: number): Rectangle | null;
  // The graph as a picture; null when another view is shown.
  picture(): HTMLCanvasElement | null;
  // Where the keyboard is; null when it is elsewhere on the page.
  focus(): Focus | null;
  destroy(): void;
}

const HINTS: Record<View, string> = {
  both: 'Click a function to find it in the graph, a frame to zoom, or press ? for all keys.',
  graph: 'Click a frame to zoom, move with the arrow keys, or press ? for all keys.',
  table: 'Click a function to see its callers and callees, or press ? for all keys.',
  tree: 'Open and close rows with the arrow keys, or press ? for all keys.',
  sandwich: 'Choose a function in the table, click a frame to zoom, or press ? for all keys.',
  time: 'Drag over a range to draw its graph, click a thread for its stack, or press ? for all keys.',
};

// Numbers of a pruned tree would be too small.
const UNKNOWN = 'Not available: this call tree is too large for exact values of a part of it. Remove the time range and '
  + 'other filters for those of all of it.';
const UNKNOWN_TABLE = {
  values: { self: new Float64Array(0), total: new Float64Array(0), baseSelf: null, baseTotal: null },
  ranked: { rows: [], funcs: new Int32Array(0), count: 0, note: UNKNOWN },
};

const STEPS = ['zoom', 'view', 'func', 'picked', 'type', 'hidden', 'recursion', 'fold', 'only', 'during', 'span', 'split'] as const;
const TRANSFORMS = ['hidden', 'recursion', 'fold', 'only', 'during', 'span'] as const;

class App implements FlameApp, Controls {
  private readonly life = new Lifetime();
  private model: Model;
  private readonly theme: Theme;
  private readonly toolbar: Toolbar;
  private readonly crumbs = new Breadcrumb((node) => this.zoom(node));
  private readonly chips = new Chips((change) => this.change(change));
  private readonly found = make('span', { class: 'found-line', role: 'status' });
  private readonly trail = make('div', { class: 'trail' });
  private readonly graph: GraphView;
  // A first picture does not wait for what it does not show.
  private readonly table: Lazy<TopTable>;
  private readonly tree: Lazy<TreeView>;
  private readonly sandwichView: Lazy<SandwichView>;
  private readonly timeView: Lazy<TimeView>;
  private readonly empty = make('p', { class: 'empty', hidden: true });
  private readonly stage: HTMLElement;
  private readonly status: Status;
  private readonly legend = new Legend((during) => this.change({ during }));
  private readonly tooltip = new Tooltip();
  private readonly menu: Lazy<Menu>;
  private readonly helpBox: Lazy<Help>;
  private readonly root: HTMLElement;
  private colours: PackageColours;
  private current: State;
  // What undo goes back to.
  private readonly past: Transform[] = [];
  private frame = 0;
  private readonly exact: ExactViews | null;

  constructor(element: HTMLElement, private readonly source: Profile, private options: MountOptions) {
    // A page around it has its own.
    this.stage = make(options.theme ? 'div' : 'main', { class: 'stage' });
    this.current = options.state ?? defaultState(source);
    this.model = new Model(derived(source, this.current).profile);
    this.exact = options.exact?.(() => this.render()) ?? null;
    this.theme = options.theme ?? new Theme(this.life);
    this.life.onEnd(this.theme.subscribe(() => this.render()));
    this.colours = new PackageColours(this.profile, this.theme.scheme, this.current.colour);
    const commands = commandsOf(this);
    this.helpBox = new Lazy(() => {
      const help = new Help(commands);
      this.root.append(help.element);
      return help;
    });
    this.menu = new Lazy(() => {
      const menu = new Menu(this.life);
      this.root.append(menu.element);
      return menu;
    });
    this.toolbar = new Toolbar(source, {
      change: (change) => this.change(change),
      toggleTheme: () => this.dark(),
      toggleSafe: () => this.safe(),
      help: () => this.help(),
    }, options.theme !== undefined, {
      states: () => this.hasStates(), splits: () => this.options.splits?.() ?? [],
    }, this.life);
    this.status = new Status((x, y) => this.openMenu(this.pointed(), x, y));
    this.graph = new GraphView({
      label: `Flame graph of ${source.title}. Arrow keys move between frames and Enter zooms. `
        + 'The table and tree views list the same data.',
      name: (func) => functionName(this.profile, func),
      onZoom: (node) => this.open(node),
      onReset: () => this.zoom(0),
      onHover: (hit, x, y) => this.hover(this.graphNow(), hit, this.current.zoom, x, y),
      onSelect: (node) => this.describe(this.graphNow(), node, this.current.zoom),
      onMenu: ({ node }, x, y) => this.openMenu(this.frameOf(node), x, y),
    });
    this.table = new Lazy(() => this.makeTable());
    this.tree = new Lazy(() => this.makeTree());
    this.sandwichView = new Lazy(() => this.makeSandwich());
    this.timeView = new Lazy(() => this.makeTime());
    this.root = this.build();
    element.replaceChildren(this.root);
    // Behind a dialog of the page, whose Escape is its own, no key is the graph's.
    listenForKeys(this.life, options.keys ?? document, () =>
      this.helpIsOpen() ? commands.filter((c) => /^(Escape|\?)$/.test(c.keys[0]))
        : document.querySelector('dialog[open]') ? [] : commands);
    this.render();
    this.refocus(options.focus ?? null);
  }

  private build(): HTMLElement {
    const { notes } = this.source;
    this.trail.append(this.crumbs.element, this.chips.element, this.found);
    this.toolbar.element.append(this.trail);
    this.stage.append(this.graph.element, this.empty);
    this.stage.toggleAttribute('data-diff', this.source.kind === 'diff');
    return make('div', { class: 'flame' },
      this.toolbar.element,
      notes.length > 0
        ? make('ul', { class: 'notes', 'aria-label': 'Data quality' },
          ...notes.map((note) => make('li', {}, note)))
        : null,
      this.stage,
      make('footer', { class: 'foot' }, this.status.element, this.legend.element),
      this.tooltip.element);
  }

  private makeTable(): TopTable {
    const table = new TopTable({
      label: 'Functions', compact: false, onPick: (func) => this.pick(func),
      onPickName: this.options.onOpenFunction, onRank: () => this.render(),
      onMenu: (func, x, y) => this.openMenu({ node: -1, func }, x, y),
    });
    this.stage.prepend(table.element);
    return table;
  }

  private makeTree(): TreeView {
    const tree = new TreeView({
      onOpen: (open) => this.change({ open }),
      onLeaf: (node) => {
        if (this.standsForOthers(node)) this.expand(node);
      },
      onSelect: (node) => this.describe(this.graphNow(), node, this.current.zoom),
      onMenu: (node, x, y) => this.openMenu(this.frameOf(node), x, y),
    });
    this.stage.append(tree.element);
    return tree;
  }

  private makeTime(): TimeView {
    const view = new TimeView(this.source, this.source.times!, {
      onSpan: (span) => this.change({ span, zoom: 0 }),
      onFunction: (func, x, y) => this.openMenu({ node: -1, func }, x, y),
    });
    this.stage.prepend(view.element);
    return view;
  }

  private makeSandwich(): SandwichView {
    const sandwich = new SandwichView({
      onPick: (func) => this.change(this.current.view === 'both' ? { picked: func } : { func }),
      onPickName: this.options.onOpenFunction,
      onRank: () => this.render(),
      onHover: (graph, hit, zoom, x, y) => this.hover(graph, hit, zoom, x, y),
      onSelect: (graph, node, zoom) => this.describe(graph, node, zoom),
      onMenu: (func, x, y) => this.openMenu({ node: -1, func }, x, y),
    });
    this.stage.append(sandwich.element);
    return sandwich;
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.exact?.end();
    this.life.end();
    this.graph.destroy();
    this.table.now?.destroy();
    this.tree.now?.destroy();
    this.sandwichView.now?.destroy();
    this.timeView.now?.destroy();
    this.root.remove();
  }

  get profile(): Profile {
    return this.model.profile;
  }

  state(): State {
    return { ...this.current };
  }

  show(state: State): void {
    this.current = { ...state };
    this.render();
  }

  rectangleOf(node: number): Rectangle | null {
    return this.hasGraph() ? this.graph.rectangleOf(node) : null;
  }

  picture(): HTMLCanvasElement | null {
    return this.hasGraph() ? this.graph.picture(this.theme.scheme.dark ? '#15171b' : '#ffffff') : null;
  }

  focus(): Focus | null {
    const { search } = this.toolbar;
    const { activeElement } = document;
    if (activeElement === search)
      return [search.selectionStart ?? search.value.length, search.selectionEnd ?? search.value.length];
    return this.stage.contains(activeElement) ? 'view' : null;
  }

  private refocus(focus: Focus | null): void {
    if (focus === 'view') this.focusView();
    else if (focus) {
      this.toolbar.search.focus();
      this.toolbar.search.setSelectionRange(...focus);
    }
  }

  private hasGraph(): boolean {
    return this.current.view === 'graph' || this.current.view === 'both' || this.current.view === 'time';
  }

  // Beside table and graph, for the function chosen there.
  private hasSandwich(): boolean {
    const { view, picked } = this.current;
    return view === 'sandwich' || (view === 'both' && picked >= 0);
  }

  private inSandwich(): boolean {
    return this.current.view === 'sandwich'
      || this.sandwichView.now?.element.contains(document.activeElement) === true;
  }

  private inTable(): boolean {
    return this.current.view === 'table'
      || this.table.now?.element.contains(document.activeElement) === true;
  }

  private helpIsOpen(): boolean {
    return this.helpBox.now?.element.open === true;
  }

  private hasTable(): boolean {
    return this.current.view === 'table' || this.current.view === 'both';
  }

  private change(change: Partial<State>): void {
    const before = this.current;
    if ('type' in change && (before.during !== '' || before.span !== ''))
      change = { ...change, during: '', span: '' }; // others have no states and no times
    if (TRANSFORMS.some((key) => key in change)) {
      const { hidden, recursion, fold, only, during, span } = before;
      this.past.push({ hidden, recursion, fold, only, during, span });
      this.current = { ...transformed(before, this.source, change), ...withoutTransforms(change) };
    } else this.current = { ...before, ...change };
    const step = STEPS.some((key) => before[key] !== this.current[key]);
    this.render();
    this.options.onState?.(this.state(), step);
  }

  private hasStates(): boolean {
    return this.source.states !== null || this.options.states?.() === true;
  }

  // Where frames are coloured by state, and states are known.
  private statesNow(): StateTotals | null {
    return this.current.colour === 'state' ? this.model.states(this.current.type) : null;
  }

  private graphNow(): Graph {
    return this.model.graph(this.current.type);
  }

  private render(): void {
    const { current } = this;
    const { scheme } = this.theme;
    const { profile } = derived(this.source, current);
    if (profile !== this.model.profile) this.model = new Model(profile);
    const { colours, model } = this;
    if (scheme.dark !== colours.scheme.dark || scheme.safe !== colours.scheme.safe
      || current.colour !== colours.by || profile !== colours.profile)
      this.colours = new PackageColours(profile, scheme, current.colour);
    this.root.dataset.theme = scheme.dark ? 'dark' : 'light';
    this.root.dataset.palette = scheme.safe ? 'safe' : 'usual';
    this.stage.dataset.view = current.view;
    this.toolbar.show(current, scheme.dark, scheme.safe);
    this.graph.element.hidden = !this.hasGraph();
    placePart(this.table, this.hasTable());
    placePart(this.tree, current.view === 'tree');
    placePart(this.sandwichView, this.hasSandwich());
    placePart(this.timeView, current.view === 'time');
    this.stage.toggleAttribute('data-picked', current.view === 'both' && this.hasSandwich());
    this.tooltip.hide();

    const graph = this.graphNow();
    if (profile.kind !== 'diff') this.colours.settle(graph);
    this.empty.hidden = graph.values.weight[0] > 0 || !this.hasGraph();
    this.empty.textContent = profile.kind === 'diff'
      ? 'The new profile has no values of this type. The table lists the removed functions.'
      : 'The profile has no values of this type.';
    // What stands around the view comes first: it decides how much room the view has.
    this.legend.show(profile, current.type, graph, scheme, current.colour, current.width,
      this.asked() || this.isUnknown() ? 0 : model.vanished(current.type), this.hasGraph() ? this.statesNow() : null, current.during);
    this.renderFound();
    this.chips.show(this.source, current);
    const path = current.zoom !== 0 && (this.hasGraph() || current.view === 'tree');
    this.crumbs.element.hidden = !path;
    if (path) this.crumbs.show(profile, current.zoom);
    this.renderViews(graph, model.search(current.search, current.regex).matches?.flags ?? null);
    this.renderStatus();
  }

  private renderViews(graph: Graph, matched: Uint8Array | null): void {
    const { current, profile } = this;
    const { type, zoom } = current;
    if (this.hasGraph())
      this.graph.show({
        graph: current.width === 'change' ? this.model.changes(type) : graph, zoom, flip: current.flip, matched: matched ?? this.pickedFlags(),
        look: makeLook(profile, type, graph, this.colours, this.statesNow()),
      });
    if (current.view === 'both' && !this.model.hasFunctionValues(type)) this.renderLater();
    else if (this.hasTable())
      this.table.get().show(this.tableShown(graph, matched,
        current.view === 'both' ? current.picked : current.func));
    if (current.view === 'tree')
      this.tree.get().show({ profile, type, graph, zoom, open: current.open, matched });
    if (current.view === 'time')
      this.timeView.get().show(current.span, current.during, this.colours, this.model.states(type) !== null);
    if (!this.hasSandwich()) return;
    this.renderSandwich(graph, matched);
  }

  // Who is asked for what the picture can't tell; null where it can, or where there is nobody to ask.
  private asked(): ExactViews | null {
    return this.model.isPruned(this.current.type) && this.current.span === '' ? this.exact : null;
  }

  // Whether nobody can tell what of "(other)" is in a part of the profile.
  private isUnknown(): boolean {
    const { model, current, profile } = this;
    return model.isPruned(current.type) && !this.asked() && !profile.table;
  }

  private seen(): Seen {
    const { source, profile, current: state } = this;
    const { whole, wholeBase } = this.graphNow();
    return { source, profile, state, whole, wholeBase };
  }

  private renderSandwich(graph: Graph, matched: Uint8Array | null): void {
    const { current, profile, model } = this;
    const { type } = current;
    const view = this.sandwichView.get();
    const drawn = model.sandwich(type, current.view === 'both' ? current.picked : current.func);
    if (!drawn) return;
    const { shown: exact, note } = this.asked()?.sandwich(this.seen(), drawn.func)
      ?? { shown: null, note: '' };
    const table = this.tableShown(graph, matched, drawn.func);
    if (exact)
      view.show(exact.sandwich, profile.types[type].unit,
        new PackageColours(exact.profile, this.theme.scheme, current.colour),
        { ...table, profile: exact.profile });
    else if (note !== '')
      view.wait(drawn.func, note, table);
    else
      view.show(drawn, profile.types[type].unit, this.colours, table,
        cutWords(profile, type, graph));
  }

  // The graph is painted before the table beside it is added up.
  private renderLater(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.frame = requestAnimationFrame(() => {
        if (this.current.view !== 'both') return;
        this.model.functionValues(this.current.type);
        this.render();
      });
    });
  }

  // Beside the table, the function chosen there is the one that stands out in the graph.
  private pickedFlags(): Uint8Array | null {
    if (this.current.view !== 'both' || this.current.picked < 0) return null;
    const flags = new Uint8Array(this.profile.names.length);
    flags[this.current.picked] = 1;
    return flags;
  }

  // One question serves all that is in view.
  private ranking(): Ranking {
    const { view } = this.current;
    const table = view === 'sandwich' ? this.sandwichView.get().table : this.table.now;
    return table?.ranking ?? { sort: '', descending: true, limit: FIRST_ROWS };
  }

  private tableShown(graph: Graph, matched: Uint8Array | null, picked: number): TableShown {
    const { profile, model, current } = this;
    const values = this.isUnknown() ? UNKNOWN_TABLE : this.asked()?.ranked(this.seen(), this.ranking())
      ?? { values: model.functionValues(current.type), ranked: null };
    return { profile, type: current.type, whole: graph.whole, matched, picked, ...values };
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
    if (this.isUnknown()) {
      this.found.textContent = UNKNOWN;
      this.toolbar.showFound('', false);
      return;
    }
    const { whole, values } = this.graphNow();
    const zoom = this.hasGraph() ? current.zoom : 0;
    const found = this.asked()?.found({ ...this.seen(), state: { ...current, zoom } }, this.ranking());
    if (found && found.note !== '') {
      this.found.textContent = found.note;
      this.toolbar.showFound('', false);
      return;
    }
    const count = found?.count ?? matches.count;
    const [least, most] = found ? [found.matched, found.matched]
      : model.matchedBounds(current.type, matches);
    const inside = found ? found.inside : model.matchedTotal(current.type, matches, zoom);
    const share = least === most ? formatPercent(least / whole)
      : `${formatPercent(least / whole)} to ${formatPercent(most / whole)}`;
    this.found.textContent = `${grouped(count)} ${count === 1 ? 'function' : 'functions'} matched: `
      + `${share} of total`
      + (zoom !== 0 && inside !== null ? `, ${formatPercent(inside / values.total[zoom])} of zoom` : '');
    this.toolbar.showFound(share, false);
  }

  private renderStatus(): void {
    const node = this.selectedNode();
    if (node >= 0) this.describe(this.graphNow(), node, this.current.zoom);
    else this.status.clear(HINTS[this.current.view]);
  }

  private factsOf(graph: Graph, hit: Hit, zoom: number) {
    return frameFacts(this.exact?.profileOf(graph) ?? this.profile, this.profile.types[this.current.type], graph, hit, zoom,
      graph === this.graphNow() ? this.model.states(this.current.type) : null);
  }

  private describe(graph: Graph, node: number, zoom: number): void {
    this.status.show(
      this.factsOf(graph, { node, rest: 0 }, zoom), graph.tree.func[node] >= 0);
  }

  private hover(graph: Graph, hit: Hit | null, zoom: number, x: number, y: number): void {
    if (hit && !this.menu.now?.isOpen) this.tooltip.show(this.factsOf(graph, hit, zoom), x, y);
    else this.tooltip.hide();
  }

  private zoom(node: number): void {
    const view = this.hasGraph() || this.current.view === 'tree' ? this.current.view : 'graph';
    if (node !== this.current.zoom || view !== this.current.view)
      this.change({ zoom: node, view, open: null });
  }

  // A frame that stands for others is asked for; any other is zoomed to.
  private open(node: number): void {
    if (this.standsForOthers(node)) this.expand(node);
    else this.zoom(node);
  }

  private standsForOthers(node: number): boolean {
    const func = this.profile.tree.func[node];
    return this.options.onExpand !== undefined && func >= 0 && isOther(this.profile.names[func]);
  }

  private expand(node: number): void {
    const { tree, names } = this.source;
    const own = derived(this.source, this.current).from[node];
    const path = pathTo(tree, tree.parent[own]).slice(1).map((n) => names[tree.func[n]]);
    this.options.onExpand?.(path);
  }

  private pick(func: number): void {
    if (this.current.view === 'both')
      this.change({ picked: this.current.picked === func ? -1 : func });
    else this.change({ view: 'sandwich', func });
  }

  // ---- what a person points at ----

  private frameOf(node: number): Frame {
    return { node, func: node >= 0 ? this.profile.tree.func[node] : -1 };
  }

  private selectedNode(): number {
    if (this.current.view === 'tree') return this.tree.now?.selected() ?? -1;
    return this.hasGraph() ? this.graph.selected : -1;
  }

  private pointed(): Frame {
    if (this.inSandwich()) return { node: -1, func: this.sandwichView.get().selectedFunction() };
    if (this.inTable() && this.hasTable()) return { node: -1, func: this.table.get().activeFunction() };
    return this.frameOf(this.selectedNode());
  }

  private frameActions(): FrameActions {
    return {
      focus: (node) => this.zoom(node),
      sandwich: (func) => this.change({ view: 'sandwich', func }),
      copy: (text) => void copyText(text),
      hide: (func) => this.change({ hidden: [...this.current.hidden, func] }),
      simplify: (change) => this.change(change),
      expand: this.options.onExpand && ((node) => this.expand(node)),
      openFunction: this.options.onOpenFunction,
      more: this.options.actions,
    };
  }

  private openMenu(frame: Frame, x: number, y: number): void {
    if (frame.func < 0) return;
    const items = frameItems(
      this.profile, this.source.names.length, this.current, frame, this.frameActions());
    this.tooltip.hide();
    this.menu.get().open(functionName(this.profile, frame.func), items, x, y);
  }

  // ---- controls ----

  search(): void {
    this.toolbar.search.select();
  }

  actions(): void {
    const frame = this.pointed();
    const box = this.hasGraph() && frame.node >= 0 ? this.graph.rectangleOf(frame.node) : null;
    const { left, top, width } = this.stage.getBoundingClientRect();
    this.openMenu(frame, box ? box.x + 16 : left + width / 2, box ? box.y + box.height : top + 40);
  }

  sandwich(): void {
    const { func } = this.pointed();
    if (func >= 0) this.change({ view: 'sandwich', func });
    else this.change({ view: this.current.view === 'sandwich' ? 'graph' : 'sandwich' });
  }

  move(direction: Direction): void {
    if (this.inSandwich()) this.sandwichView.get().move(direction);
    else if (this.current.view === 'tree') this.tree.get().move(direction);
    else if (!this.inTable()) this.graph.move(direction);
    else if (direction === 'up') this.table.get().move(-1);
    else if (direction === 'down') this.table.get().move(1);
  }

  enter(): void {
    const { view } = this.current;
    if (this.inSandwich()) this.sandwichView.get().enter();
    else if (view === 'tree') this.tree.get().enter();
    else if (this.pointed().node >= 0) this.open(this.pointed().node);
    else if (this.pointed().func >= 0) this.pick(this.pointed().func);
  }

  zoomOut(): void {
    this.zoom(Math.max(0, this.profile.tree.parent[this.current.zoom]));
  }

  escape(): void {
    const { view, zoom, search, picked } = this.current;
    const typing = document.activeElement === this.toolbar.search;
    if (this.helpIsOpen()) this.helpBox.get().toggle();
    else if (typing && search !== '') this.change({ search: '' });
    else if (typing) this.focusView();
    else if (this.inSandwich() && this.sandwichView.get().reset()) return;
    else if (view === 'both' && picked >= 0) this.change({ picked: -1 });
    else if ((this.hasGraph() || view === 'tree') && zoom !== 0) this.zoom(0);
    else if (search !== '') this.change({ search: '' });
    else if (view === 'time' && this.current.span !== '') this.change({ span: '' });
  }

  private focusView(): void {
    if (this.hasGraph()) this.graph.element.focus();
    else if (this.hasTable()) this.table.get().element.focus();
    else if (this.current.view === 'tree') this.tree.get().element.focus();
    else this.sandwichView.get().table.element.focus();
  }

  view(view: View): void {
    if (view === 'time' && !this.source.times) return;
    this.change({ view: this.current.view === view ? 'graph' : view });
    this.focusView();
  }

  hideSelected(): void {
    const { func } = this.pointed();
    if (func >= 0 && func < this.source.names.length)
      this.change({ hidden: [...this.current.hidden, func] });
  }

  undo(): void {
    const before = this.past.pop();
    if (!before) return;
    this.change(before);
    this.past.pop(); // going back is no step to go back from
  }

  toggleRecursion(): void {
    this.change({ recursion: !this.current.recursion });
  }

  toggleLibraries(): void {
    this.toggleFold(ALL_LIBRARIES);
  }

  toggleOwn(): void {
    this.toggleFold(NO_LIBRARIES);
  }

  private toggleFold(what: string): void {
    const { fold } = this.current;
    const others = fold.filter((one) => one !== ALL_LIBRARIES && one !== NO_LIBRARIES);
    this.change({ fold: fold.includes(what) ? others : [...others, what] });
  }

  nextColour(): void {
    const all: ColourBy[] = this.hasStates() ? ['package', 'binary', 'state'] : ['package', 'binary'];
    this.change({ colour: all[(all.indexOf(this.current.colour) + 1) % all.length] });
  }

  nextType(): void {
    this.change({ type: (this.current.type + 1) % this.source.types.length });
  }

  flip(): void {
    this.change({ flip: !this.current.flip });
  }

  dark(): void {
    this.theme.toggleDark();
  }

  safe(): void {
    this.theme.toggleSafe();
  }

  help(): void {
    this.helpBox.get().toggle();
  }
}

// Makes a part that is wanted for the first time, and hides one that is not wanted any more.
function placePart(part: Lazy<{ element: HTMLElement }>, wanted: boolean): void {
  if (wanted) part.get().element.hidden = false;
  else if (part.now) part.now.element.hidden = true;
}

function withoutTransforms(change: Partial<State>): Partial<State> {
  const out = { ...change };
  for (const key of TRANSFORMS) delete out[key];
  return out;
}

export function mount(
  element: HTMLElement, profile: Profile, options: MountOptions = {},
): FlameApp {
  return new App(element, profile, options);
}
