// SPDX-License-Identifier: Apache-2.0
// Simpler trees out of a profile's own: frames hidden, recursion and libraries collapsed, only the
// stacks through one binary. What is taken out leaves its value with its caller, so sums stay right.

import { Lazy } from '../dom';
import { isLibraryFile, libraryOf } from './library';
import { readSpan, valuesIn } from './times';
import { makeTree, type Tree } from './tree';
import type { Profile } from './data';

export interface Transform {
  // Functions of the source profile.
  hidden: readonly number[];
  recursion: boolean;
  // Binaries whose runs of frames are one frame each; ALL_LIBRARIES stands for every library, and with
  // NO_LIBRARIES they are left out.
  fold: readonly string[];
  // Only stacks through this binary; '' for all.
  only: string;
  // Only what was measured in this state, of the default type; '' for all.
  during: string;
  // Only what was measured in this part of a recording (writeSpan), of the default type; '' for all.
  span: string;
}

export const ALL_LIBRARIES = '*';
// Libraries are left out, and their callers have what they take: only a program's own code is shown.
export const NO_LIBRARIES = '-';

export interface Derived {
  profile: Profile;
  // From a node of the source to the one it became; -1 where its stacks are left out.
  of: Int32Array;
  // From a node to the first of the source that became it.
  from: Int32Array;
}

export function binaryName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export const isLibrary = isLibraryFile;

// Whether there is a library that could be collapsed: a few functions tell.
export function hasLibraries({ names, files, binaries }: Profile): boolean {
  return names.some((name, f) => libraryOf(name, files[f], binaries[f]) !== '');
}

// The binaries of a profile by their short names, in order.
export function binariesOf(profile: Profile): string[] {
  return [...new Set([...new Set(profile.binaries)].map(binaryName))]
    .filter((name) => name !== '').sort();
}

function isPlain(t: Transform): boolean {
  return t.hidden.length === 0 && !t.recursion && t.fold.length === 0 && t.only === '' && t.during === '' && t.span === '';
}

const HIDDEN = -1;

// What each function is shown as: itself, nothing, or its library.
interface Roles {
  shown: Int32Array;
  names: string[];
  files: string[];
  binaries: string[];
}

function rolesOf(source: Profile, t: Transform): Roles {
  const count = source.names.length;
  const shown = Int32Array.from({ length: count }, (_, f) => f);
  const out: Roles = {
    shown, names: source.names.slice(), files: source.files.slice(),
    binaries: source.binaries.slice(),
  };
  const every = t.fold.includes(ALL_LIBRARIES);
  const none = t.fold.includes(NO_LIBRARIES);
  const libraries = new Map<string, number>();
  for (let f = 0; f < count && t.fold.length > 0; f++) {
    const binary = binaryName(source.binaries[f]);
    const library = binary !== '' && t.fold.includes(binary) ? binary
      : every || none ? libraryOf(source.names[f], source.files[f], source.binaries[f]) : '';
    if (library === '') continue;
    if (none) {
      shown[f] = HIDDEN;
      continue;
    }
    let id = libraries.get(library);
    if (id === undefined) {
      libraries.set(library, (id = out.names.length));
      out.names.push(library);
      out.files.push('');
      out.binaries.push(library === binary ? binary : '');
    }
    shown[f] = id;
  }
  for (const f of t.hidden) shown[f] = HIDDEN;
  return out;
}

// Which nodes end a stack that counts, and which lead to one.
function reach(source: Profile, only: string): { counts: Uint8Array; leads: Uint8Array } | null {
  if (only === '') return null;
  const { tree, binaries } = source;
  const through = binaries.map((binary) => binaryName(binary) === only);
  const counts = new Uint8Array(tree.size);
  for (let n = 1; n < tree.size; n++)
    if (counts[tree.parent[n]] || through[tree.func[n]]) counts[n] = 1;
  const leads = counts.slice();
  leads[0] = 1;
  for (let n = tree.size - 1; n > 0; n--) if (leads[n]) leads[tree.parent[n]] = 1;
  return { counts, leads };
}

class Growing {
  readonly parent = [-1];
  readonly func = [-1];
  readonly inlined = [1];
  readonly from = [0];
  private readonly children = new Map<number, number>();

  constructor(private readonly functionCount: number) {}

  child(parent: number, func: number, source: number): number {
    const key = parent * this.functionCount + func;
    let id = this.children.get(key);
    if (id === undefined) {
      this.children.set(key, (id = this.parent.length));
      this.parent.push(parent);
      this.func.push(func);
      this.inlined.push(1);
      this.from.push(source);
    }
    return id;
  }

  tree(): Tree {
    this.inlined[0] = 0;
    return makeTree(
      Int32Array.from(this.parent), Int32Array.from(this.func), Uint8Array.from(this.inlined));
  }
}

// Every node is itself: written out when somebody asks, which no first picture does.
function unchanged(source: Profile): Derived {
  const same = new Lazy(() => Int32Array.from({ length: source.tree.size }, (_, n) => n));
  return {
    profile: source,
    get of() { return same.get(); },
    get from() { return same.get(); },
  };
}

// The profile as it was in one state. All of its nodes stay, most of them without a value.
function inState(source: Profile, name: string): Profile {
  const at = source.states?.names.indexOf(name) ?? -1;
  if (!source.states || at < 0) return source; // states may still be on the way
  const none = new Float64Array(source.tree.size);
  const all = (column: Float64Array) => column.reduce((a, v) => a + v, 0);
  return {
    ...source,
    self: source.self.map((column, type) => type === source.defaultType ? source.states!.self[at] : column),
    states: { names: source.states.names, self: source.states.self.map((column, s) => s === at ? column : none) },
    table: null,
    whole: source.whole ?? { value: source.self.map(all), base: source.base.map(all) },
  };
}

// The profile as it was in one part of the time.
function inSpan(source: Profile, text: string, during: string): Profile {
  const span = readSpan(text);
  if (!span || !source.times) return source;
  const { times, tree, states, defaultType } = source;
  const { self, states: within } = valuesIn(times, span, tree.size, states,
    during === '' ? -1 : states?.names.indexOf(during) ?? -1);
  const all = (column: Float64Array) => column.reduce((a, v) => a + v, 0);
  return {
    ...source,
    self: source.self.map((column, type) => type === defaultType ? self : column),
    states: within, table: null,
    whole: source.whole ?? { value: source.self.map(all), base: source.base.map(all) },
  };
}

// Which nodes lead to a value.
function valued({ tree, self, defaultType }: Profile): Uint8Array {
  const out = Uint8Array.from(self[defaultType], (value) => Number(value !== 0));
  out[0] = 1;
  for (let n = tree.size - 1; n > 0; n--) if (out[n]) out[tree.parent[n]] = 1;
  return out;
}

export function derive(whole: Profile, t: Transform): Derived {
  const measured = t.during === '' ? whole : inState(whole, t.during);
  const source = t.span === '' ? measured : inSpan(measured, t.span, t.during);
  const { tree } = source;
  if (isPlain(t)) return unchanged(source);
  const roles = rolesOf(source, t);
  const reached = reach(source, t.only);
  const leads = source === whole ? null : valued(source);
  const out = new Growing(roles.names.length);
  const of = new Int32Array(tree.size).fill(-1);
  of[0] = 0;
  // By function: the node it became first on the path at hand. Each source node is pushed once to
  // enter it and, where it opened its function, once more as its complement to leave it.
  const open = new Int32Array(roles.names.length).fill(-1);
  const stack = new Int32Array(2 * tree.size);
  let top = 0;
  const pushChildren = (n: number) => {
    const bottom = top;
    for (let c = tree.firstChild[n]; c > 0; c = tree.nextSibling[c]) stack[top++] = c;
    stack.subarray(bottom, top).reverse(); // the first child is on top
  };
  pushChildren(0);
  while (top > 0) {
    const n = stack[--top];
    if (n < 0) {
      open[roles.shown[tree.func[~n]]] = -1;
      continue;
    }
    if ((reached && !reached.leads[n]) || (leads && !leads[n])) continue;
    const above = of[tree.parent[n]];
    const func = roles.shown[tree.func[n]];
    if (func === HIDDEN) of[n] = above;
    else if (func >= source.names.length && out.func[above] === func) of[n] = above;
    else if (t.recursion && func < source.names.length && open[func] >= 0) of[n] = open[func];
    else of[n] = out.child(above, func, n);
    if (func !== HIDDEN && !tree.inlined[n]) out.inlined[of[n]] = 0;
    if (t.recursion && func !== HIDDEN && open[func] < 0) {
      open[func] = of[n];
      stack[top++] = ~n;
    }
    pushChildren(n);
  }
  const counts = reached?.counts ?? null;
  const sum = (column: Float64Array) => {
    const sums = new Float64Array(out.parent.length);
    for (let n = 0; n < tree.size; n++)
      if (of[n] >= 0 && (!counts || counts[n])) sums[of[n]] += column[n];
    return sums;
  };
  const all = (column: Float64Array) => column.reduce((a, v) => a + v, 0);
  return {
    profile: {
      ...source,
      names: roles.names, files: roles.files, binaries: roles.binaries,
      tree: out.tree(),
      self: source.self.map(sum),
      base: source.base.map(sum),
      states: source.states && { names: source.states.names, self: source.states.self.map(sum) },
      table: null,
      // Shares stay shares of everything that was measured.
      whole: source.whole ?? { value: source.self.map(all), base: source.base.map(all) },
    },
    of,
    from: Int32Array.from(out.from),
  };
}

const lately = new WeakMap<Profile, { key: string; derived: Derived }>();

// The same as derive(), remembering the last answer: everything that looks at one state asks for it.
export function derived(source: Profile, t: Transform): Derived {
  const key = JSON.stringify([t.hidden, t.recursion, t.fold, t.only, t.during, t.span]);
  const known = lately.get(source);
  if (known?.key === key) return known.derived;
  const made = derive(source, t);
  lately.set(source, { key, derived: made });
  return made;
}
