// SPDX-License-Identifier: Apache-2.0
// What the chart of a selection offers for a range that was dragged and for a name of its legend.

import type { MenuItem } from '../flame/controls/menu';
import { address, go, namesParam, type Params } from './route';
import { keep } from './saved';
import { labelOf, parseQuery, withLabel, without, writeQuery, type Selection } from './selection';
import { before, rangeOf, type Bounds } from './time';

const between = (prefix: string, bounds: Bounds): Params => {
  const { from, to } = rangeOf(bounds);
  return { [`${prefix}from`]: from, [`${prefix}to`]: to };
};

const serviceOf = (query: string): string => labelOf(parseQuery(query) ?? { type: '', matchers: [] }, 'service_name');

export function comparePrevious(query: string, bounds: Bounds, more: Params = {}): string {
  return address('/compare', {
    query, ...between('', bounds), base_query: query, ...between('base_', before(bounds)), ...namesParam(), ...more });
}

// `choose` zooms the page; `part` keeps the chart and looks into this range of it.
export function rangeItems(
  query: string, bounds: Bounds, choose: (bounds: Bounds) => void, part?: (bounds: Bounds) => void,
): MenuItem[] {
  return [
    ...(part ? [{ label: 'Flame graph of this range', run: () => part(bounds) }] : []),
    { label: 'Zoom in', run: () => choose(bounds) },
    { label: 'Compare with the previous period', run: () => go(comparePrevious(query, bounds)) },
    { label: 'Add a note…', run: () => keep({ kind: 'note', bounds, service: serviceOf(query) }) },
    { label: 'Pin against retention…', run: () => keep({ kind: 'pin', bounds, service: serviceOf(query) }) },
    { label: 'Incident bundle…', run: () => keep({ kind: 'bundle', bounds, query }) },
  ];
}

// Of a series that has this value of the label that the chart is grouped by.
export function seriesItems(
  selection: Selection, label: string, value: string, bounds: Bounds, select: (next: Selection) => void,
): MenuItem[] {
  const rest = without(selection, label, value);
  const only = writeQuery(withLabel(selection, label, value));
  return [
    { label: `Only this ${label}`, run: () => select(withLabel(selection, label, value)) },
    { label: `Exclude this ${label}`, run: () => select(rest) },
    { label: 'Compare with all others', run: () => go(address('/compare', {
      query: only, ...between('', bounds), base_query: writeQuery(rest), ...between('base_', bounds),
      normalize: 'total', ...namesParam() })) },
    { label: 'Compare with the previous period', run: () => go(comparePrevious(only, bounds)) },
  ];
}
