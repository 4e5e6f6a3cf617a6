// SPDX-License-Identifier: Apache-2.0
// Which columns the table of functions has: self and total, or for a diff base, new and change of
// both. A column knows its number for a function and how to write it.

import { formatChange, formatGrowth, formatPercent, formatValue } from './units';
import type { FunctionValues } from './functions';

export interface Column {
  key: string;
  label: string;
  // The label where there is little room.
  short: string;
  // In pixels, with and without the text beside it.
  width: number;
  narrow: number;
  // What a first click sorts by: the number, or its size whatever the sign.
  bySize: boolean;
  // Left out where there is little room.
  minor: boolean;
  value: (func: number) => number;
  text: (func: number) => string;
  // A second, quieter text beside the first.
  aside: ((func: number) => string) | null;
  // A bar behind the number, from 0 to 1.
  bar: ((func: number) => number) | null;
}

function plain(
  key: string, label: string, column: Float64Array, unit: string, whole: number,
): Column {
  return {
    key,
    label,
    short: label,
    width: 176,
    narrow: 88,
    bySize: false,
    minor: false,
    value: (f) => column[f],
    text: (f) => formatValue(column[f], unit),
    aside: (f) => formatPercent(column[f] / whole),
    bar: (f) => column[f] / whole,
  };
}

function changed(
  key: string, label: string, base: Float64Array, value: Float64Array, unit: string,
): Column[] {
  const side = (name: string, column: Float64Array): Column => ({
    key: `${key}-${name}`,
    label: `${label} ${name}`,
    short: name,
    width: 104,
    narrow: 88,
    bySize: false,
    minor: true,
    value: (f) => column[f],
    text: (f) => formatValue(column[f], unit),
    aside: null,
    bar: null,
  });
  return [
    side('base', base),
    side('new', value),
    {
      key: `${key}-change`,
      label: `${label} change`,
      short: `${label} Δ`,
      width: 160,
      narrow: 88,
      bySize: true,
      minor: false,
      value: (f) => value[f] - base[f],
      text: (f) => formatChange(value[f] - base[f], unit),
      aside: (f) => formatGrowth(base[f], value[f]),
      bar: null,
    },
  ];
}

export function makeColumns(values: FunctionValues, unit: string, whole: number): Column[] {
  const { self, total, baseSelf, baseTotal } = values;
  if (!baseSelf || !baseTotal)
    return [plain('self', 'Self', self, unit, whole), plain('total', 'Total', total, unit, whole)];
  return [
    ...changed('self', 'Self', baseSelf, self, unit),
    ...changed('total', 'Total', baseTotal, total, unit),
  ];
}

// The functions with any value at all, and of those the matched ones.
export function rowsOf(values: FunctionValues, matched: Uint8Array | null): Int32Array {
  const { self, total, baseTotal } = values;
  const rows: number[] = [];
  for (let f = 0; f < total.length; f++) {
    if (total[f] === 0 && self[f] === 0 && !(baseTotal && baseTotal[f] !== 0)) continue;
    if (!matched || matched[f]) rows.push(f);
  }
  return Int32Array.from(rows);
}

export function sortRows(
  rows: Int32Array, column: Column | null, names: readonly string[], descending: boolean,
): void {
  const sign = descending ? -1 : 1;
  if (!column) {
    rows.sort((a, b) => sign * (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    return;
  }
  const keys = new Float64Array(names.length);
  for (const f of rows) keys[f] = column.bySize ? Math.abs(column.value(f)) : column.value(f);
  rows.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
}
