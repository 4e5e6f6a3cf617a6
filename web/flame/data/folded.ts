// SPDX-License-Identifier: Apache-2.0
// A profile's stacks as lines, "main;serve;read 42", which many tools read; of a comparison with two
// numbers, before and after, as tools for differences of such files have it.

import type { Profile } from './data';

// What separates frames and lines may be in a name, too.
const clean = (name: string) => name.replace(/[;\r\n]/g, (c) => (c === ';' ? ':' : ' '));

function foldedLines({ tree, names }: Profile, columns: readonly Float64Array[]): string {
  const paths = new Array<string>(tree.size).fill('');
  const lines: string[] = [];
  for (let n = 1; n < tree.size; n++) {
    const above = paths[tree.parent[n]];
    const name = clean(names[tree.func[n]]);
    paths[n] = above === '' ? name : `${above};${name}`;
    const values = columns.map((column) => Math.round(column[n]));
    if (values.some((value) => value !== 0)) lines.push(`${paths[n]} ${values.join(' ')}\n`);
  }
  return lines.join('');
}

export function foldedStacks(profile: Profile, type: number): string {
  return foldedLines(profile, [profile.self[type]]);
}

// Base values are as they are compared: normalised.
export function foldedDiff(profile: Profile, type: number): string {
  return foldedLines(profile, [profile.base[type], profile.self[type]]);
}
