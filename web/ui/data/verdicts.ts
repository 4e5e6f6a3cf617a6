// SPDX-License-Identifier: Apache-2.0
// What the server knows of the changes between two selections, beside their picture.

import type { CompareAnswer, ComparedMeasure } from '../api';

const finding = ({ low, high, verdict, cause, more_seconds: more }: ComparedMeasure, exposure: number) => ({
  ...(low !== null && high !== null ? { interval: [low * exposure, high * exposure] } : {}),
  verdict: verdict === 'too few' ? 'noise' : verdict,
  ...(cause && cause !== 'unknown' ? { cause } : {}),
  ...(more ? { more_seconds: more } : {}),
});

// A function that was inlined on one side only is judged at its caller, and has no values here.
const isThere = ({ base, new: value }: ComparedMeasure) => base !== 0 || value !== 0;

// The picture's document with what is known of each function's change.
export function withVerdicts(flame: unknown, compared: CompareAnswer): unknown {
  const { strings, functions } = flame as { strings: string[]; functions: { name: number[] } };
  const rows = new Map(compared.functions.map((row) => [row.function, row]));
  const { exposure } = compared.new;
  const changes: unknown[] = [];
  functions.name.forEach((name, index) => {
    const row = rows.get(strings[name]);
    if (!row || !isThere(row.total)) return;
    changes.push({
      function: index, ...finding(row.total, exposure),
      ...(isThere(row.self) ? { self: finding(row.self, exposure) } : {}),
    });
  });
  return { ...(flame as object), changes };
}

// How many changes are certain, and by what.
export function verdictWords({ found, judged, method, hosts, requests, coarse, new: side }: CompareAnswer): string {
  const by = method === 'counts' ? 'by counts alone'
    : `by ${side.windows} windows${hosts > 1 ? ` and ${hosts} hosts` : ''}`;
  return `${found === 0 ? 'No change is certain' : `${found} certain change${found === 1 ? '' : 's'}`}`
    + ` among ${judged} comparisons, judged ${by}. More calls or slower ones: `
    + `${requests === 'unknown' ? 'unknown without requests' : requests === 'known' ? 'each change says which' : 'values are per request'}.`
    + (coarse ? ` The ${coarse === 1 ? 'smallest function was' : `${coarse} smallest functions were`} not judged`
      + ' (limits.query_memory).' : '');
}
