// SPDX-License-Identifier: Apache-2.0
// What the server knows of the changes between two selections, beside their picture.

import type { CompareAnswer } from './api';

// The picture's document with what is known of each function's change.
export function withVerdicts(flame: unknown, compared: CompareAnswer): unknown {
  const { strings, functions } = flame as { strings: string[]; functions: { name: number[] } };
  const measures = new Map(compared.functions.map((row) => [row.function, row.total]));
  const changes: unknown[] = [];
  functions.name.forEach((name, index) => {
    const measure = measures.get(strings[name]);
    // A function that was inlined on one side only is judged at its caller, and has no values here.
    if (!measure || (measure.base === 0 && measure.new === 0)) return;
    const { low, high, verdict, cause, more_seconds: more } = measure;
    const { exposure } = compared.new;
    changes.push({
      function: index,
      ...(low !== null && high !== null ? { interval: [low * exposure, high * exposure] } : {}),
      verdict: verdict === 'too few' ? 'noise' : verdict,
      ...(cause && cause !== 'unknown' ? { cause } : {}),
      ...(more ? { more_seconds: more } : {}),
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
