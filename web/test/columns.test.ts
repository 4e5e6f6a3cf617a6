// SPDX-License-Identifier: Apache-2.0
// Which columns a table shows: a comparison keeps its interval, and before and after, beside a graph.

import assert from 'node:assert/strict';
import test from 'node:test';
import { columnsFor, makeColumns } from '../flame/data/columns';

const column = Float64Array.from([1]);
const values = { self: column, total: column, baseSelf: column, baseTotal: column };
const found = { interval: [1, 2] as [number, number], verdict: 'grew' as const, cause: null, moreSeconds: 0 };
const judged = makeColumns(values, 'nanoseconds', 1, () => found, true);
const keys = (width: number, all = judged, compact = false) =>
  columnsFor(width, all, compact).columns.map(({ key }) => key);

test('a table leaves out what has least to say first', () => {
  assert.deepEqual(keys(1400), judged.map(({ key }) => key));
  // 58% of a page of 1440 px.
  assert.deepEqual(keys(816), ['self-change', 'total-base', 'total-new', 'total-change', 'interval']);
  assert.deepEqual(keys(660), ['self-change', 'total-change', 'interval']);
  assert.deepEqual(keys(560), ['self-change', 'total-change']);
  assert.deepEqual(keys(358), ['self-change', 'total-change']);
  assert.deepEqual(keys(900, judged, true), ['self-change', 'total-change']);
});

test('a name keeps its room', () => {
  for (let width = 500; width < 1600; width += 7) {
    const { widths } = columnsFor(width, judged, false);
    assert.ok(width - widths.reduce((sum, one) => sum + one, 0) >= 160, String(width));
  }
});

test('a table of one profile has all its columns at any width', () => {
  const plain = makeColumns({ self: column, total: column, baseSelf: null, baseTotal: null }, 'count', 1);
  for (const width of [300, 500, 800, 1400]) assert.deepEqual(keys(width, plain), ['self', 'total']);
});
