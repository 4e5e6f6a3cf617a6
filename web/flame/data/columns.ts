// SPDX-License-Identifier: Apache-2.0
// Which columns the table of functions has: self and total, or for a diff base, new and change of
// both. A column knows its number for a function and how to write it.

import { formatChange, formatGrowth, formatPercent, formatValue } from './units';
import { isOther } from './graft';
import type { FunctionFinding } from './data';
import type { FunctionValues } from './functions';

export interface Column {
  key: string;
  label: string;
  // The label where there is little room.
  short: string;
  // In pixels: with room to spare, without it, and without the text beside it.
  width: number;
  narrow: number;
  bare: number;
  // A difference of two values: what grew comes first, what shrank last.
  isChange: boolean;
  // Where there is little room, columns of the highest rank are left out first; those of 0 stay.
  rank: number;
  value: (func: number) => number;
  text: (func: number) => string;
  // A second, quieter text beside the first.
  aside: ((func: number) => string) | null;
  // A bar behind the number, from 0 to 1.
  bar: ((func: number) => number) | null;
  // What is known of a change, where somebody measured it.
  finding?: FindingOf;
}

export type FindingOf = (index: number) => FunctionFinding | undefined;

function plain(
  key: string, label: string, column: Float64Array, unit: string, whole: number,
): Column {
  return {
    key,
    label,
    short: label,
    width: 176,
    narrow: 138,
    bare: 88,
    isChange: false,
    rank: 0,
    value: (f) => column[f],
    text: (f) => formatValue(column[f], unit),
    aside: (f) => formatPercent(column[f] / whole),
    bar: (f) => column[f] / whole,
  };
}

function changed(
  key: string, label: string, base: Float64Array, value: Float64Array, unit: string,
  rank: number, finding?: FindingOf,
): Column[] {
  const side = (id: string, name: string, column: Float64Array): Column => ({
    key: `${key}-${id}`,
    label: `${label} ${name}`,
    short: name,
    width: 104,
    narrow: 80,
    bare: 80,
    isChange: false,
    rank,
    value: (f) => column[f],
    text: (f) => formatValue(column[f], unit),
    aside: null,
    bar: null,
  });
  // Scaled values carry rounding errors; a difference that small is none.
  const change = (f: number) =>
    Math.abs(value[f] - base[f]) <= 1e-5 * Math.abs(base[f]) ? 0 : value[f] - base[f];
  return [
    side('base', 'before', base),
    side('new', 'after', value),
    {
      key: `${key}-change`,
      label: `${label} change`,
      short: `${label} Δ`,
      width: 176,
      narrow: 148,
      bare: 92,
      isChange: true,
      rank: 0,
      value: change,
      text: (f) => formatChange(change(f), unit),
      aside: (f) => formatGrowth(base[f], value[f]),
      bar: null,
      finding,
    },
  ];
}

// Between which values a change is; sorted, what certainly grew most comes first.
function intervalColumn(finding: FindingOf, unit: string): Column {
  const found = (f: number) => finding(f)?.interval;
  return {
    key: 'interval',
    label: 'Interval',
    short: 'Interval',
    width: 184,
    narrow: 168,
    bare: 168,
    isChange: false,
    rank: 1,
    value: (f) => found(f)?.[0] ?? -Infinity,
    text: (f) => found(f)?.map((end) => formatChange(end, unit)).join(' … ') ?? '',
    aside: null,
    bar: null,
  };
}

const VERDICTS = ['', 'noise', 'undecided', 'shrank', 'grew'];

// Whether a change is certain, as a word; sorted, what grew comes first.
function verdictColumn(finding: FindingOf): Column {
  const word = (f: number) => finding(f)?.verdict ?? '';
  return {
    key: 'verdict',
    label: 'Verdict',
    short: 'Verdict',
    width: 96,
    narrow: 88,
    bare: 80,
    isChange: false,
    rank: 3,
    value: (f) => VERDICTS.indexOf(word(f)),
    text: word,
    aside: null,
    bar: null,
  };
}

// Indexes are functions, or nodes when the values are by node.
export function makeColumns(
  values: FunctionValues, unit: string, whole: number, finding?: FindingOf, verdicts = false,
): Column[] {
  const { self, total, baseSelf, baseTotal } = values;
  if (!baseSelf || !baseTotal)
    return [plain('self', 'Self', self, unit, whole), plain('total', 'Total', total, unit, whole)];
  return [
    ...changed('self', 'Self', baseSelf, self, unit, 4, finding && ((f) => finding(f)?.self)),
    ...changed('total', 'Total', baseTotal, total, unit, 2, finding),
    ...(finding && verdicts ? [intervalColumn(finding, unit), verdictColumn(finding)] : []),
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

// What stands for all that is left comes last, however much it is.
export function sortRows(
  rows: Int32Array, column: Column | null, names: readonly string[], descending: boolean,
): void {
  const rest = rows.filter((f) => isOther(names[f]));
  const named = rest.length === 0 ? rows : rows.filter((f) => !isOther(names[f]));
  sortNamed(named, column, names, descending);
  if (rest.length === 0) return;
  rows.set(named);
  rows.set(rest, named.length);
}

function sortNamed(
  rows: Int32Array, column: Column | null, names: readonly string[], descending: boolean,
): void {
  const sign = descending ? -1 : 1;
  if (!column) {
    rows.sort((a, b) => sign * (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    return;
  }
  const keys = new Float64Array(names.length);
  for (const f of rows) keys[f] = column.value(f);
  rows.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
}

const NARROW_PX = 720;
const BARE_PX = 400;

// The padding of a cell, on both sides.
const CELL_PX = 16;
// What a name keeps when columns that could be left out are shown.
const NAME_PX = 160;
const RANKS = 4;

export interface Fit {
  columns: Column[];
  widths: number[];
  narrow: boolean;
  bare: boolean;
}

// The columns that a table of this width has room for: all with plenty of it, otherwise those of the
// lowest ranks, as many ranks as leave a name its room.
export function columnsFor(width: number, all: Column[], compact: boolean): Fit {
  const bare = compact || width < BARE_PX;
  const upTo = (rank: number) => all.filter((column) => column.rank <= rank);
  const fit = (columns: Column[], narrow: boolean): Fit => ({ columns, narrow, bare,
    widths: columns.map((column) => bare ? column.bare : narrow ? column.narrow : column.width) });
  const left = ({ widths }: Fit) => width - CELL_PX - widths.reduce((sum, one) => sum + one, 0);
  const wide = fit(all, false);
  if (!compact && width >= NARROW_PX && left(wide) >= NAME_PX) return wide;
  for (let rank = compact ? 0 : RANKS; rank > 0; rank--) {
    const some = fit(upTo(rank), true);
    if (left(some) >= NAME_PX) return some;
  }
  return fit(upTo(0), true);
}

// Lays a table's columns out for the room it has, and says which room that is, and what is left of it
// for a name.
export function fitColumns(element: HTMLElement, all: Column[], compact: boolean): {
  columns: Column[]; narrow: boolean; room: number;
} {
  const { columns, widths, narrow, bare } = columnsFor(element.clientWidth, all, compact);
  element.classList.toggle('table-narrow', narrow);
  element.classList.toggle('table-bare', bare);
  element.style.setProperty('--columns', widths.map((width) => `${width}px`).join(' '));
  return { columns, narrow, room: element.clientWidth - CELL_PX - widths.reduce((a, w) => a + w, 0) };
}
