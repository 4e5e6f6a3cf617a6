// SPDX-License-Identifier: Apache-2.0
// What the page shows, as one plain object, and its form in a URL's fragment. A copied URL of the
// same page opens the same view; anything out of range in it falls back to the default.

import type { Profile } from './data';

export type View = 'graph' | 'table' | 'sandwich';

export interface State {
  type: number;
  view: View;
  // The node the graph is zoomed to; 0 is the whole.
  zoom: number;
  search: string;
  regex: boolean;
  // The root is at the bottom.
  flip: boolean;
  // The function in the middle of the sandwich; -1 picks one.
  func: number;
}

export function defaultState(profile: Profile): State {
  return {
    type: profile.defaultType,
    view: 'graph',
    zoom: 0,
    search: '',
    regex: false,
    flip: false,
    func: -1,
  };
}

export function encodeState(state: State, profile: Profile): string {
  const start = defaultState(profile);
  const out = new URLSearchParams();
  if (state.type !== start.type) out.set('type', String(state.type));
  if (state.view !== start.view) out.set('view', state.view);
  if (state.zoom !== 0) out.set('zoom', String(state.zoom));
  if (state.func >= 0 && state.view === 'sandwich') out.set('function', String(state.func));
  if (state.search !== '') out.set(state.regex ? 'regex' : 'search', state.search);
  if (state.flip) out.set('flip', '1');
  return out.toString();
}

function index(value: string | null, count: number, otherwise: number): number {
  if (value === null || !/^\d{1,9}$/.test(value)) return otherwise;
  return Number(value) < count ? Number(value) : otherwise;
}

export function decodeState(fragment: string, profile: Profile): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ''));
  const state = defaultState(profile);
  const view = given.get('view');
  if (view === 'table' || view === 'sandwich') state.view = view;
  state.type = index(given.get('type'), profile.types.length, state.type);
  state.zoom = index(given.get('zoom'), profile.tree.size, 0);
  state.func = index(given.get('function'), profile.names.length, -1);
  state.regex = given.has('regex');
  state.search = given.get('regex') ?? given.get('search') ?? '';
  state.flip = given.get('flip') === '1';
  return state;
}
