// SPDX-License-Identifier: Apache-2.0
// When the samples of a recording were taken, thread by thread: values within a part of the time, and
// sums by cells of a heat map.

import type { States } from './states';

export interface Thread {
  name: string;
  process: string;
  pid: number; // 0: not known
  tid: number;
  // Its samples, in the order of their times.
  first: number;
  count: number;
}

// Columns with an entry per sample, of the default type.
export interface Times {
  start: number; // seconds since 1970
  length: number; // microseconds up to behind the last sample
  threads: Thread[];
  at: Float64Array; // microseconds since the start
  node: Int32Array;
  value: Float64Array;
  state: Int16Array | null; // of the profile's states; -1 for none
  // When what a sample stands for began: amounts of time lead up to it, others are of that moment.
  begin: Float64Array;
}

// From one time up to before another, in microseconds since the start.
export interface Span {
  from: number;
  to: number;
}

export function writeSpan({ from, to }: Span): string {
  return `${Math.round(from)}-${Math.round(to)}`;
}

export function readSpan(text: string): Span | null {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text);
  const from = Number(match?.[1] ?? NaN);
  const to = Number(match?.[2] ?? NaN);
  return to > from ? { from, to } : null;
}

// The samples of a thread from a time on: the index of the first, among those of all.
export function firstFrom({ at }: Times, { first, count }: Thread, time: number): number {
  let low = first;
  let high = first + count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A thread does one thing at a time; values of sampled waits are longer than those were.
export function beginsOf(
  threads: readonly Thread[], at: Float64Array, value: Float64Array, isTime: boolean,
): Float64Array {
  const begin = at.slice();
  if (isTime)
    for (const { first, count } of threads)
      for (let i = first; i < first + count; i++)
        begin[i] = Math.max(i > first ? at[i - 1] : 0, at[i] - Math.max(1, value[i] / 1000));
  return begin;
}

// The samples of which some is within the span, and how much of each.
function each(times: Times, span: Span, visit: (i: number, share: number) => void): void {
  const { at, begin } = times;
  for (const thread of times.threads) {
    const end = thread.first + thread.count;
    for (let i = firstFrom(times, thread, span.from); i < end && begin[i] < span.to; i++) {
      const length = at[i] - begin[i];
      if (length > 0) visit(i, (Math.min(at[i], span.to) - Math.max(begin[i], span.from)) / length);
      else if (at[i] < span.to) visit(i, 1);
    }
  }
}

// The values of nodes within a part of the time, and by state where states are known; of one state
// alone unless that is -1.
export function valuesIn(
  times: Times, span: Span, size: number, states: States | null, only: number,
): { self: Float64Array; states: States | null } {
  const self = new Float64Array(size);
  const byState = states && times.state
    ? states.names.map(() => new Float64Array(size)) : null;
  each(times, span, (i, share) => {
    const state = times.state?.[i] ?? -1;
    if (only >= 0 && state !== only) return;
    const value = times.value[i] * share;
    self[times.node[i]] += value;
    if (byState && state >= 0) byState[state][times.node[i]] += value;
  });
  return { self, states: states && byState && { names: states.names, self: byState } };
}

// ---- the heat map ----

export const HEAT_ROWS = 50;
const COLUMNS_MAX = 300;
const COLUMNS_MIN = 20;
const SECOND_US = 1e6;
const STEPS_US = [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 12e7, 3e8, 6e8, 18e8, 36e8];

// A column is a second long, unless these would be too few or too many.
export function columnLength(length: number): number {
  const short = length < SECOND_US * COLUMNS_MIN;
  const fits = (step: number) => short ? length / step >= COLUMNS_MIN : length / step <= COLUMNS_MAX;
  const steps = STEPS_US.filter((step) => short ? step < SECOND_US : step >= SECOND_US).filter(fits);
  return short ? steps.pop() ?? STEPS_US[0] : steps[0] ?? Math.ceil(length / COLUMNS_MAX);
}

export interface Heat {
  column: number; // the length of a column, of HEAT_ROWS cells
  columns: number;
  cells: Float64Array; // column by column
  most: number;
}

export function heatOf(times: Times, only: number): Heat {
  const column = columnLength(times.length);
  const columns = Math.max(1, Math.ceil(times.length / column));
  const cells = new Float64Array(columns * HEAT_ROWS);
  const cell = column / HEAT_ROWS;
  const { at, begin, value, state } = times;
  for (let i = 0; i < at.length; i++) {
    if (only >= 0 && state?.[i] !== only) continue;
    const last = Math.min(cells.length - 1, Math.floor(at[i] / cell));
    const length = at[i] - begin[i];
    if (length <= 0) cells[last] += value[i];
    else
      for (let c = Math.floor(begin[i] / cell); c <= last; c++)
        cells[c] += value[i] * (Math.min(at[i], (c + 1) * cell) - Math.max(begin[i], c * cell)) / length;
  }
  let most = 0;
  for (const value of cells) most = Math.max(most, value);
  return { column, columns, cells, most };
}

// ---- words ----

export function formatAt(micros: number, precision = 1000): string {
  const digits = precision >= SECOND_US ? 0 : precision >= 1000 ? 3 : 6;
  return `${(micros / SECOND_US).toFixed(digits)} s`;
}

export function formatSpan({ from, to }: Span): string {
  const digits = to - from >= 1000 ? 3 : 6;
  return `${(from / SECOND_US).toFixed(digits)} s to ${(to / SECOND_US).toFixed(digits)} s`;
}

export function threadName({ name, process, pid, tid }: Thread): string {
  const words = name || process || (tid ? 'thread' : 'all threads');
  return tid ? `${words} (${tid})` : pid ? `${words} (${pid})` : words;
}
