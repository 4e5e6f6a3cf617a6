// SPDX-License-Identifier: Apache-2.0
// What of a profile was measured in which state (running, sleeping, blocked …): by node, and put
// together from a profile of each state where they come one by one.

import { totalsOf, type Tree } from './tree';
import type { Profile } from './data';

// One column of the default type per state, one entry per node.
export interface States {
  names: string[];
  self: Float64Array[];
}

export interface StateTotals {
  names: string[];
  total: Float64Array[];
  // The state that most of a node was in; NONE where of most of it no state is known.
  main: Uint8Array;
  // What of everything no state is known of.
  unknown: number;
}

export const NONE = 255;
export const STATES_MAX = 16;

// `whole` is each node's total of the type that states are of.
export function stateTotals(tree: Tree, states: States, whole: Float64Array): StateTotals {
  const total = states.self.map((self) => totalsOf(tree, self));
  const main = new Uint8Array(tree.size).fill(NONE);
  const unknown = (n: number) => total.reduce((rest, column) => rest - column[n], whole[n]);
  for (let n = 0; n < tree.size; n++) {
    let most = Math.max(0, unknown(n));
    total.forEach((column, s) => {
      if (column[n] > most) [most, main[n]] = [column[n], s];
    });
  }
  return { names: states.names, total, main, unknown: Math.max(0, unknown(0)) };
}

// The node of the whole for each of a part's; what the whole does not have is its caller's.
function placesIn(whole: Profile, part: Profile): Int32Array {
  const functions = new Map(whole.names.map((name, f) => [name, f]));
  const count = whole.names.length;
  const children = new Map<number, number>();
  for (let n = 1; n < whole.tree.size; n++)
    children.set(whole.tree.parent[n] * count + whole.tree.func[n], n);
  const places = new Int32Array(part.tree.size);
  for (let n = 1; n < part.tree.size; n++) {
    const above = places[part.tree.parent[n]];
    const func = functions.get(part.names[part.tree.func[n]]);
    places[n] = (func !== undefined && children.get(above * count + func)) || above;
  }
  return places;
}

// The same profile, with what each of the others says about one state.
export function withStates(whole: Profile, parts: readonly (readonly [string, Profile])[]): Profile {
  const self = parts.map(([, part]) => {
    const places = placesIn(whole, part);
    const column = new Float64Array(whole.tree.size);
    part.self[part.defaultType].forEach((value, n) => { column[places[n]] += value; });
    return column;
  });
  return { ...whole, states: { names: parts.map(([name]) => name), self } };
}
