// SPDX-License-Identifier: Apache-2.0
// A profile's stacks as lines, "main;serve;read 42", which many tools read.

import type { Profile } from './data';

// What separates frames and lines may be in a name, too.
const clean = (name: string) => name.replace(/[;\r\n]/g, (c) => (c === ';' ? ':' : ' '));

export function foldedStacks(profile: Profile, type: number): string {
  const { tree, names, self } = profile;
  const paths = new Array<string>(tree.size).fill('');
  const lines: string[] = [];
  for (let n = 1; n < tree.size; n++) {
    const above = paths[tree.parent[n]];
    const name = clean(names[tree.func[n]]);
    paths[n] = above === '' ? name : `${above};${name}`;
    const value = Math.round(self[type][n]);
    if (value !== 0) lines.push(`${paths[n]} ${value}\n`);
  }
  return lines.join('');
}
