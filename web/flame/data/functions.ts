// SPDX-License-Identifier: Apache-2.0
// Values by function, over the whole tree: what the table lists. A function's total counts each
// stack once, however often the function recurs in it.

import type { Tree, Values } from './tree';

export interface FunctionValues {
  self: Float64Array;
  total: Float64Array;
  baseSelf: Float64Array | null;
  baseTotal: Float64Array | null;
}

function sum(tree: Tree, column: Float64Array, count: number, only: Uint8Array | null) {
  const out = new Float64Array(count);
  const { func } = tree;
  for (let n = 1; n < tree.size; n++) if (!only || only[n]) out[func[n]] += column[n];
  return out;
}

// `outer` comes from outermost() in tree.ts.
export function functionValues(
  tree: Tree, values: Values, count: number, outer: Uint8Array,
): FunctionValues {
  const { self, total, baseSelf, baseTotal } = values;
  return {
    self: sum(tree, self, count, null),
    total: sum(tree, total, count, outer),
    baseSelf: baseSelf && sum(tree, baseSelf, count, null),
    baseTotal: baseTotal && sum(tree, baseTotal, count, outer),
  };
}

// The function with the greatest self value: a good first thing to look at. -1 when there is none.
export function heaviest(values: FunctionValues): number {
  let best = -1;
  for (let f = 0; f < values.self.length; f++)
    if (best < 0 || values.self[f] > values.self[best]) best = f;
  return best;
}

// How many functions the new profile no longer has.
export function vanished(values: FunctionValues): number {
  if (!values.baseTotal) return 0;
  let count = 0;
  for (let f = 0; f < values.total.length; f++)
    if (values.total[f] === 0 && values.baseTotal[f] > 0) count++;
  return count;
}
