// SPDX-License-Identifier: Apache-2.0
// The commands that give in a shell what a page shows.

import type { Bounds } from './time';

// As one word of a POSIX shell, whatever is in it.
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

export interface Shown {
  origin: string;
  query: string;
  bounds: Bounds;
}

const when = (seconds: number) => new Date(Math.round(seconds) * 1000).toISOString().replace('.000', '');

export function queryCommand({ origin, query, bounds }: Shown, what: string, more = ''): string {
  const parts = ['assay query', what, shellQuote(query),
    '--from', when(bounds.from), '--to', when(bounds.to)];
  if (origin !== 'http://127.0.0.1:4040') parts.push('-u', shellQuote(origin));
  return parts.join(' ') + (more === '' ? '' : ` ${more}`);
}

export function curlCommand({ origin, query, bounds }: Shown, path: string, more: string): string {
  return [`curl -G ${shellQuote(`${origin}${path}`)}`,
    `--data-urlencode ${shellQuote(`query=${query}`)}`,
    `-d from=${when(bounds.from)}`, `-d to=${when(bounds.to)}`, more].join(' \\\n  ');
}
