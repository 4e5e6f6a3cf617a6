// SPDX-License-Identifier: Apache-2.0
// Requests by route, the bands that people look at, and what the requests of one band do that others
// don't.

import type { Profile } from '../../flame/data/data';
import { quote } from '../selection';

export interface Step { from: number; to: number; count: number; errors: number }

export interface Spread {
  requests: number;
  errors: number;
  per_second: number;
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  histogram: Step[];
}

export interface RouteRow extends Spread {
  service: string;
  method: string;
  route: string;
}

export interface RequestsAnswer extends Spread {
  route_count: number;
  routes: RouteRow[];
}

interface Side { requests: number; with_samples: number; samples: number; value: number }

export interface RequestsFlame {
  type: string;
  evidence: {
    band: { from: number; to: number | null; errors: boolean };
    selected: Side;
    rest: Side;
    samples_ambiguous: number;
    samples_without_spans: number;
    note: string;
  };
  flame: unknown;
}

export const BANDS: readonly (readonly [band: string, title: string])[] = [
  ['', 'All'], ['p99', 'Slowest 1%'], ['p90', 'Slowest 10%'], ['p50-p90', 'p50 to p90'], ['-p50', 'Faster half'],
  ['errors', 'Errors'],
];

// What a band is compared with: all that was faster than it, or all requests where that says nothing.
export function fasterThan(band: string): string {
  const [low] = band.split('-', 1);
  return band === 'errors' || low === '' ? '' : `-${low.replace(/\+$/, '')}`;
}

// A dragged part of the histogram, in nanoseconds, as a band.
export function bandOf(from: number, to: number): string {
  const text = (ns: number) => `${Math.max(1, Math.round(ns / 1000))}us`;
  return `${text(from)}-${text(to)}`;
}

export function selectorOf({ service, method, route }: { service: string; method: string; route: string }): string {
  return [['service', service], ['method', method], ['route', route]]
    .filter(([, value]) => value !== '').map(([name, value]) => `${name}=${quote(value)}`).join(',');
}

export interface Difference {
  name: string;
  slow: number; // per request
  rest: number;
}

// Values of functions themselves. A frame in brackets, such as a lock or the state of a thread, says
// what the function before it waited for, and is named together with it.
function selfByName({ names, tree, self, defaultType }: Profile): Map<string, number> {
  const out = new Map<string, number>();
  const inBrackets = (name: string) => name.startsWith('[');
  self[defaultType].forEach((value, node) => {
    if (value === 0 || node === 0) return;
    const parts: string[] = [];
    let n = node;
    for (; n > 0; n = tree.parent[n]) {
      parts.unshift(names[tree.func[n]]);
      if (!inBrackets(parts[0])) break;
    }
    const name = parts.join(' ');
    out.set(name, (out.get(name) ?? 0) + value);
  });
  return out;
}

// The functions with the largest differences, those that slow requests spend more on first.
export function differences(slow: Profile, rest: Profile, most = 12): Difference[] {
  const [now, before] = [selfByName(slow), selfByName(rest)];
  return [...new Set([...now.keys(), ...before.keys()])]
    .map((name) => ({ name, slow: now.get(name) ?? 0, rest: before.get(name) ?? 0 }))
    .sort((a, b) => (b.slow - b.rest) - (a.slow - a.rest))
    .filter((one) => one.slow > one.rest)
    .slice(0, most);
}
