// SPDX-License-Identifier: Apache-2.0
// Search over function names, and the share of the profile that the matches account for. A match
// inside a match adds nothing to the share.

import type { Tree } from './tree';

export interface Matches {
  // One flag per function.
  flags: Uint8Array;
  count: number;
}

// Throws a SyntaxError when `regex` is set and the text is not a regular expression. Capital
// letters in the text make the search mind capitals.
export function makePattern(text: string, regex: boolean): RegExp {
  const source = regex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  // In a regular expression, \S and \W are classes, not capitals.
  const minded = /[A-Z]/.test(regex ? text.replace(/\\./g, '') : text);
  return new RegExp(source, minded ? '' : 'i');
}

export function matchNames(names: readonly string[], pattern: RegExp): Matches {
  const flags = new Uint8Array(names.length);
  let count = 0;
  for (let f = 0; f < names.length; f++) {
    if (pattern.test(names[f])) {
      flags[f] = 1;
      count++;
    }
  }
  return { flags, count };
}

// The sum of the outermost matches at or below `root`.
export function matchedTotal(
  tree: Tree, total: Float64Array, flags: Uint8Array, root: number,
): number {
  const { parent, func, size } = tree;
  if (func[root] >= 0 && flags[func[root]]) return total[root];
  // Bit 0: at or below the root. Bit 1: at or below a match.
  const state = new Uint8Array(size);
  state[root] = 1;
  let sum = 0;
  for (let n = root + 1; n < size; n++) {
    const above = state[parent[n]];
    if (above === 1 && flags[func[n]]) {
      sum += total[n];
      state[n] = 3;
    } else {
      state[n] = above;
    }
  }
  return sum;
}
