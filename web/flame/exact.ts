// SPDX-License-Identifier: Apache-2.0
// Numbers that a picture can't give: where small frames were folded into "(other)", the table, the
// search and a function's callers and callees come from whoever has all stacks. A page asks its
// server; what is asked for last is remembered.

import { mergeFunctions } from './data/graft';
import { makeTree, makeValues, pathTo, type Graph } from './data/tree';
import { derived } from './data/transform';
import type { Around, ExactViews, Found, Seen } from './app';
import type { Profile } from './data/data';
import type { FunctionValues } from './data/functions';
import type { Sandwich } from './data/sandwich';
import type { State } from './state';
import type { Ranked, Ranking, TableRow } from './view/table';

// As in Transform, by name.
export interface Simpler {
  hide: string[];
  fold: readonly string[];
  only: string;
  recursion: boolean;
  // Only what was measured in this state; '' for all.
  during: string;
}

export interface TableRequest extends Ranking, Simpler {
  search: string;
  regex: boolean;
  // The stacks that begin with these frames; a search looks from the last of them on.
  focus: string[];
}

export interface AroundRequest extends Simpler {
  name: string;
}

export interface TableAnswer {
  // How many functions there are; rows may be fewer.
  count: number;
  // Of the stacks with a function that was searched for.
  matched: number;
  rows: TableRow[];
}

// The stacks around a function, as profiles whose root has the function as its only child.
export interface AroundAnswer {
  callers: Profile;
  callees: Profile;
}

export interface Ask {
  table: (request: TableRequest, signal: AbortSignal) => Promise<TableAnswer>;
  around?: (request: AroundRequest, signal: AbortSignal) => Promise<AroundAnswer>;
}

export interface Asked<T> {
  value: T | null;
  error: string;
}

// The last answer to one kind of question. Another question ends the one before.
class Latest<Q, T> {
  private key = '';
  private asked: Asked<T> = { value: null, error: '' };
  private controller = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ask: (question: Q, signal: AbortSignal) => Promise<T>,
    private readonly changed: () => void,
  ) {}

  get(question: Q, delay = 0): Asked<T> {
    const key = JSON.stringify(question);
    if (key === this.key) return this.asked;
    this.end();
    this.key = key;
    const asked: Asked<T> = { value: null, error: '' };
    this.asked = asked;
    this.controller = new AbortController();
    const { signal } = this.controller;
    this.timer = setTimeout(() => {
      this.ask(question, signal).then(
        (value) => { asked.value = value; },
        (error: unknown) => { asked.error = (error as Error).message || 'The table could not be loaded.'; },
      ).then(() => {
        if (!signal.aborted) this.changed();
      });
    }, delay);
    return asked;
  }

  end(): void {
    clearTimeout(this.timer);
    this.controller.abort();
  }
}

// While somebody types, each letter is another question.
const TYPING_MS = 300;

class Exact implements ExactViews {
  private readonly tables: Latest<TableRequest, TableAnswer>;
  private readonly insides: Latest<TableRequest, TableAnswer>;
  private readonly arounds: Latest<AroundRequest, AroundAnswer> | null;
  // The last answers, as what the views read.
  private ranks: { answer: TableAnswer; values: FunctionValues; ranked: Ranked } | null = null;
  private around: { answer: AroundAnswer; profile: Profile; sandwich: Sandwich } | null = null;

  constructor(ask: Ask, changed: () => void) {
    this.tables = new Latest(ask.table, changed);
    this.insides = new Latest(ask.table, changed);
    this.arounds = ask.around ? new Latest(ask.around, changed) : null;
  }

  private table(request: TableRequest): Asked<TableAnswer> {
    return this.tables.get(request, request.search === '' ? 0 : TYPING_MS);
  }

  ranked(seen: Seen, ranking: Ranking): { values: FunctionValues; ranked: Ranked } {
    const { value, error } = this.table(requestOf(seen, ranking));
    if (value && this.ranks?.answer !== value) {
      const funcs = new Map(seen.profile.names.map((name, f) => [name, f]));
      this.ranks = {
        answer: value, values: valuesOf(value.rows, seen.profile.kind === 'diff'),
        ranked: { rows: value.rows, count: value.count, note: '',
          funcs: Int32Array.from(value.rows, ({ name }) => funcs.get(name) ?? -1) },
      };
    }
    if (value && this.ranks) return this.ranks;
    const note = error || 'Loading the table…';
    return { values: NO_VALUES, ranked: { rows: [], funcs: new Int32Array(0), count: 0, note } };
  }

  found(seen: Seen, ranking: Ranking): Found {
    const { state, source } = seen;
    const request = requestOf(seen, ranking);
    const { value, error } = this.table(request);
    if (!value) return { count: 0, matched: 0, inside: null, note: error || 'Searching…' };
    if (state.zoom === 0) return { ...value, inside: null, note: '' };
    const own = derived(source, state).from[state.zoom];
    const focus = pathTo(source.tree, own).slice(1).map((n) => source.names[source.tree.func[n]]);
    const inside = this.insides.get(
      { ...request, focus, limit: 1, sort: 'self', descending: true }, TYPING_MS).value;
    return { ...value, inside: inside?.matched ?? null, note: '' };
  }

  sandwich(seen: Seen, func: number): Around {
    const { profile, source, state, whole, wholeBase } = seen;
    if (func < 0 || !this.arounds) return { shown: null, note: '' };
    const { value: answer, error } = this.arounds.get({
      name: profile.names[func], ...simplerOf(source, state) });
    if (!answer) return { shown: null, note: error || 'Loading callers and callees…' };
    if (this.around?.answer !== answer)
      this.around = { answer, ...sandwichOf(profile, answer, func, whole, wholeBase) };
    return { shown: this.around, note: '' };
  }

  profileOf(graph: Graph): Profile | null {
    const { around } = this;
    return around && (graph === around.sandwich.callers || graph === around.sandwich.callees)
      ? around.profile : null;
  }

  end(): void {
    this.tables.end();
    this.insides.end();
    this.arounds?.end();
  }
}

export const exactBy = (ask: Ask) => (changed: () => void): ExactViews => new Exact(ask, changed);

const NO_VALUES: FunctionValues = {
  self: new Float64Array(0), total: new Float64Array(0), baseSelf: null, baseTotal: null,
};

function requestOf({ source, state }: Seen, ranking: Ranking): TableRequest {
  return {
    ...ranking, sort: ranking.sort || (source.kind === 'diff' ? 'self-change' : 'self'),
    search: state.search, regex: state.regex, focus: [], ...simplerOf(source, state),
  };
}

function simplerOf(source: Profile, state: State): Simpler {
  return {
    hide: state.hidden.map((f) => source.names[f]),
    fold: state.fold, only: state.only, recursion: state.recursion, during: state.during,
  };
}

// ---- answers as what the views read ----

// Rows as the values of as many functions.
export function valuesOf(rows: readonly TableRow[], diff: boolean): FunctionValues {
  const column = (value: (row: TableRow) => number) => Float64Array.from(rows, value);
  return {
    self: column((row) => row.self),
    total: column((row) => row.total),
    baseSelf: diff ? column((row) => row.baseSelf) : null,
    baseTotal: diff ? column((row) => row.baseTotal) : null,
  };
}

// The tree below the function, which is the root's only child, with the functions of another profile.
function graphOf(part: Profile, functionOf: Int32Array, whole: number, wholeBase: number): Graph {
  const { tree, self, base } = part;
  const top = tree.firstChild[0];
  const idOf = new Int32Array(tree.size).fill(-1);
  const parent: number[] = [];
  const func: number[] = [];
  const inlined: number[] = [];
  const values: number[] = [];
  const before: number[] = [];
  for (let n = Math.max(1, top); n < tree.size; n++) {
    if (n !== top && idOf[tree.parent[n]] < 0) continue;
    idOf[n] = parent.length;
    parent.push(n === top ? -1 : idOf[tree.parent[n]]);
    func.push(functionOf[tree.func[n]]);
    inlined.push(tree.inlined[n]);
    values.push(self[0][n]);
    if (base.length > 0) before.push(base[0][n]);
  }
  const made = makeTree(Int32Array.from(parent), Int32Array.from(func), Uint8Array.from(inlined));
  return {
    tree: made, whole, wholeBase,
    values: makeValues(made, Float64Array.from(values),
      base.length > 0 ? Float64Array.from(before) : null),
  };
}

// A profile that has the functions of both, and the sandwich in its terms.
export function sandwichOf(
  profile: Profile, answer: AroundAnswer, func: number, whole: number, wholeBase = 0,
): { profile: Profile; sandwich: Sandwich } {
  const above = mergeFunctions(profile, answer.callers);
  const withAbove = { ...profile, names: above.names, files: above.files, binaries: above.binaries };
  const below = mergeFunctions(withAbove, answer.callees);
  return {
    profile: { ...profile, names: below.names, files: below.files, binaries: below.binaries },
    sandwich: {
      func,
      callers: graphOf(answer.callers, above.of, whole, wholeBase),
      callees: graphOf(answer.callees, below.of, whole, wholeBase),
      truncated: false,
    },
  };
}
