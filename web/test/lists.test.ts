// SPDX-License-Identifier: Apache-2.0
// What the lists of the server's page are made of: sorting, and services from series.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Quality, TimeSeries } from '../ui/api';
import { sorted, type Column } from '../ui/parts/list';
import { servicesOf } from '../ui/data/services';
import { formatRate, meaningOf } from '../ui/data/values';

interface Row {
  name: string;
  size: number | null;
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', cell: () => '', order: ({ name }) => name },
  { id: 'size', title: 'Size', cell: () => '', order: ({ size }) => size },
  { id: 'plain', title: 'Plain', cell: () => '' },
];
const rows: Row[] = [{ name: 'v10', size: 1 }, { name: 'v9', size: null }, { name: 'a', size: 20 }];
const names = (sort: string) => sorted(rows, columns, sort).map(({ name }) => name);

test('numbers within words are numbers', () => {
  assert.deepEqual(names('name'), ['a', 'v9', 'v10']);
  assert.deepEqual(names('-name'), ['v10', 'v9', 'a']);
});

test('what is not known goes last, whichever way', () => {
  assert.deepEqual(names('size'), ['v10', 'a', 'v9']);
  assert.deepEqual(names('-size'), ['a', 'v10', 'v9']);
});

test('a column without an order, or that is not there, leaves the rows as they are', () => {
  assert.deepEqual(names('plain'), ['v10', 'v9', 'a']);
  assert.deepEqual(names('nonsense'), ['v10', 'v9', 'a']);
});

test('a service has the rate of all its versions, and the newest comes first', () => {
  const common = { type: 'cpu', quality: {} as Quality };
  // In the second step one version follows the other: 0.2 and 0.6 are not 0.8.
  const answer: TimeSeries = {
    ...common, step_seconds: 10, series: [
      { labels: { service_name: 'shop' }, points: [[0, 1, 0.1, 10], [10, 4, 0.4, 10], [20, 4, 1, 4]] },
      { labels: {}, points: [[0, 5, null, 0]] },
    ],
  };
  const versions: TimeSeries = {
    ...common, step_seconds: 10, series: [
      { labels: { service_name: 'shop', version: '1' }, points: [[0, 1, 0.1, 10], [10, 1, 0.2, 5]] },
      { labels: { service_name: 'shop', version: '2' }, points: [[10, 3, 0.6, 5], [20, 4, 1, 4]] },
      { labels: {}, points: [[0, 5, null, 0]] },
    ],
  };
  const [shop, nameless] = servicesOf(answer, versions);
  assert.deepEqual(shop.points, [[0, 0.1, 10], [10, 0.4, 10], [20, 1, 4]]);
  assert.deepEqual(shop.versions, ['2', '1']);
  assert.ok(Math.abs(shop.mean - 9 / 24) < 1e-9, 'per covered second, not per second of the range');
  assert.equal(nameless.mean, 0.5, 'without durations, per second of the step');
  assert.equal(nameless.name, 'unknown_service');
});

test('a small number of cores is still a number', () => {
  const cpu = meaningOf('process_cpu:cpu:nanoseconds:cpu:nanoseconds');
  for (const value of [0.00042, 0.0000071, 0.012, 0.5, 12.3, 400])
    assert.ok(Number(formatRate(cpu, value)) > 0, `${value} is ${formatRate(cpu, value)}`);
  assert.equal(formatRate(cpu, 0), '0');
});
