// SPDX-License-Identifier: Apache-2.0
// What the page shows, as one plain object, and its form in a URL's fragment. A copied URL of the
// same page opens the same view; anything out of range in it falls back to the default.

import { findFunctions, findNodes, functionKey, nodeKey } from './data/keys';
import { readSpan, writeSpan } from './data/times';
import { binariesOf, derived, type Transform } from './data/transform';
import type { Profile } from './data/data';

export type View = 'both' | 'graph' | 'table' | 'tree' | 'sandwich' | 'time';
export type ColourBy = 'package' | 'binary' | 'state';
export type WidthBy = 'value' | 'change';

const VIEWS: readonly View[] = ['both', 'graph', 'table', 'tree', 'sandwich', 'time'];

export interface State extends Transform {
  type: number;
  view: View;
  // The node the graph and the call tree are zoomed to; 0 is the whole. Nodes are those of the tree
  // that hiding and collapsing leave.
  zoom: number;
  search: string;
  regex: boolean;
  // The root is at the bottom.
  flip: boolean;
  // The function in the middle of the sandwich; -1 picks one.
  func: number;
  // The function that stands out in the graph beside the table; -1 for none.
  picked: number;
  colour: ColourBy;
  // Of a diff's frames: the new value, or the size of the change.
  width: WidthBy;
  // A label whose values are frames below the root; '' for none. The page makes such trees.
  split: string;
  // The call tree's open nodes; null opens its heaviest path.
  open: readonly number[] | null;
}

// `view` is what a page shows first: it depends on the room there is, not on the address.
export function defaultState(profile: Profile, view: View = 'graph'): State {
  return {
    type: profile.defaultType,
    view,
    zoom: 0,
    search: '',
    regex: false,
    flip: false,
    func: -1,
    picked: -1,
    colour: 'package',
    width: 'value',
    hidden: [],
    recursion: false,
    fold: [],
    only: '',
    during: '',
    span: '',
    split: '',
    open: null,
  };
}

// More open nodes than this do not go into an address.
const OPEN_MAX = 64;
const HIDDEN_MAX = 64;
const STATE_BYTES = 64;
const NONE = '-';

export function encodeState(state: State, source: Profile, view: View = 'graph'): string {
  const start = defaultState(source, view);
  const out = new URLSearchParams();
  const { tree, names } = derived(source, state).profile;
  if (state.type !== start.type) out.set('type', String(state.type));
  if (state.view !== start.view) out.set('view', state.view);
  if (state.zoom !== 0) out.set('zoom', nodeKey(tree, names, state.zoom));
  if (state.func >= 0 && state.view === 'sandwich')
    out.set('function', functionKey(names[state.func]));
  if (state.picked >= 0 && state.view === 'both')
    out.set('mark', functionKey(names[state.picked]));
  if (state.search !== '') out.set(state.regex ? 'regex' : 'search', state.search);
  if (state.flip) out.set('flip', '1');
  if (state.colour !== 'package') out.set('colour', state.colour);
  if (state.width !== 'value') out.set('width', state.width);
  if (state.hidden.length > 0)
    out.set('hide', state.hidden.slice(0, HIDDEN_MAX).map((f) => functionKey(source.names[f])).join('.'));
  if (state.recursion) out.set('recursion', 'once');
  for (const binary of state.fold) out.append('fold', binary);
  if (state.only !== '') out.set('only', state.only);
  if (state.during !== '') out.set('state', state.during);
  if (state.span !== '') out.set('span', state.span);
  if (state.split !== '') out.set('split', state.split);
  if (state.open && state.view === 'tree')
    out.set('open', state.open.slice(0, OPEN_MAX).map((n) => nodeKey(tree, names, n)).join('.') || NONE);
  return out.toString();
}

// Known before there is a tree: the page asks for one that is split.
export function splitOf(fragment: string): string {
  return (new URLSearchParams(fragment.replace(/^#/, '')).get('split') ?? '').slice(0, STATE_BYTES);
}

function index(value: string | null, count: number, otherwise: number): number {
  if (value === null || !/^\d{1,9}$/.test(value)) return otherwise;
  return Number(value) < count ? Number(value) : otherwise;
}

function keys(value: string | null, most: number): string[] {
  return (value ?? '').split('.').filter((key) => /^[0-9a-z]{8,16}$/.test(key)).slice(0, most);
}

export function decodeState(fragment: string, source: Profile, view: View = 'graph'): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ''));
  const state = defaultState(source, view);
  const asked = VIEWS.find((one) => one === given.get('view'));
  if (asked && (asked !== 'time' || source.times)) state.view = asked;
  state.type = index(given.get('type'), source.types.length, state.type);
  state.regex = given.has('regex');
  state.search = given.get('regex') ?? given.get('search') ?? '';
  state.flip = given.get('flip') === '1';
  const colour = given.get('colour');
  if (colour === 'binary' || colour === 'state') state.colour = colour;
  if (given.get('width') === 'change' && source.kind === 'diff') state.width = 'change';
  state.hidden = findFunctions(source.names, keys(given.get('hide'), HIDDEN_MAX));
  state.recursion = given.get('recursion') === 'once';
  const binaries = given.has('fold') || given.has('only') ? binariesOf(source) : [];
  state.fold = given.getAll('fold').filter((one) => one === '*' || one === '-' || binaries.includes(one));
  if (binaries.includes(given.get('only') ?? '')) state.only = given.get('only')!;
  // States may be on the way; a name that none has is left out once they are there.
  const during = (given.get('state') ?? '').slice(0, STATE_BYTES);
  if (source.kind === 'flame' && (!source.states || source.states.names.includes(during))) state.during = during;
  state.split = splitOf(fragment);
  const span = readSpan(given.get('span') ?? '');
  if (span && source.times) state.span = writeSpan(span);
  const { tree, names } = derived(source, state).profile;
  state.zoom = findNodes(tree, names, keys(given.get('zoom'), 1))[0] ?? 0;
  state.func = findFunctions(names, keys(given.get('function'), 1))[0] ?? -1;
  state.picked = findFunctions(names, keys(given.get('mark'), 1))[0] ?? -1;
  if (given.has('open')) state.open = findNodes(tree, names, keys(given.get('open'), OPEN_MAX));
  return state;
}

// The same view of another tree: what is hidden or collapsed has changed.
export function transformed(state: State, source: Profile, change: Partial<Transform>): State {
  const next = { ...state, ...change };
  const before = derived(source, state);
  const functions = source.names.length;
  const from = before.from[state.zoom] ?? 0;
  const opened = state.open?.map((n) => before.from[n]) ?? null;
  const after = derived(source, next);
  const kept = (f: number) => (f < functions && !next.hidden.includes(f) ? f : -1);
  const find = (n: number) => Math.max(0, after.of[n]);
  return {
    ...next,
    zoom: find(from),
    open: opened && [...new Set(opened.map(find))],
    func: kept(state.func),
    picked: kept(state.picked),
  };
}
