// SPDX-License-Identifier: Apache-2.0
// What is looked at: a profile type and labels, written as the query that the server takes:
// cpu{service_name="x",host=~"web-.*"}. Addresses hold the query itself, so that it can be read,
// edited by hand and pasted into a shell.

export type Operator = '=' | '!=' | '=~' | '!~';

export interface Matcher {
  name: string;
  operator: Operator;
  value: string;
}

export interface Selection {
  type: string; // '' for none yet
  matchers: Matcher[];
}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', '\\': '\\', '"': '"' };

// Null when the text is no query of this form.
export function parseQuery(text: string): Selection | null {
  const head = /^\s*([^{}\s]*)\s*(?:\{(.*)\})?\s*$/s.exec(text);
  if (!head) return null;
  const matchers: Matcher[] = [];
  let rest = (head[2] ?? '').trim();
  while (rest !== '') {
    const found = /^([A-Za-z_][\w.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,\s*|$)/s.exec(rest);
    if (!found) return null;
    matchers.push({
      name: found[1] === 'service' ? 'service_name' : found[1],
      operator: found[2] as Operator,
      value: found[3].replace(/\\(.)/gs, (_, c: string) => ESCAPES[c] ?? c),
    });
    rest = rest.slice(found[0].length);
  }
  return { type: head[1], matchers };
}

export function quote(value: string): string {
  return `"${value.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;
}

export function writeQuery({ type, matchers }: Selection): string {
  const inside = matchers.map(({ name, operator, value }) => `${name}${operator}${quote(value)}`);
  return `${type}{${inside.join(',')}}`;
}

export function labelOf(selection: Selection, name: string): string {
  return selection.matchers.find((m) => m.name === name && m.operator === '=')?.value ?? '';
}

// One matcher per label: a new one takes the old one's place. An empty value removes it.
export function withLabel(
  selection: Selection, name: string, value: string, operator: Operator = '=',
): Selection {
  const others = selection.matchers.filter((m) => m.name !== name);
  const added = value === '' ? [] : [{ name, operator, value }];
  return name === 'service_name'
    ? { ...selection, matchers: [...added, ...others] }
    : { ...selection, matchers: [...others, ...added] };
}

// Without what has this value of a label, beside what else is left out.
export function without(selection: Selection, name: string, value: string): Selection {
  return { ...selection, matchers: [...selection.matchers, { name, operator: '!=', value }] };
}

export const SHORT_TYPES: readonly (readonly [string, string])[] = [
  ['cpu', 'CPU'], ['wall', 'Wall clock'], ['offcpu', 'Off CPU'], ['alloc', 'Allocations'],
  ['inuse', 'Memory in use'], ['lock', 'Locks'],
];
