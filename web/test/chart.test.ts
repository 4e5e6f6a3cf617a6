// SPDX-License-Identifier: Apache-2.0
// Ranges that are dragged on a chart, and what its legend leaves out.

import assert from 'node:assert/strict';
import test from 'node:test';
import { parseQuery, without, writeQuery } from '../ui/selection';
import { stack } from '../ui/data/stack';
import { moveEnd, parseBounds, writeBounds } from '../ui/time';

const CHART = { from: 1_800_000_000, to: 1_800_003_600 };
const PART = { from: CHART.from + 600, to: CHART.from + 900 };

test('an end of a range moves within the chart and never past the other end', () => {
  assert.deepEqual(moveEnd(PART, 'from', -60.4, CHART, 10), { from: PART.from - 60, to: PART.to });
  assert.deepEqual(moveEnd(PART, 'from', -9999, CHART, 10), { from: CHART.from, to: PART.to });
  assert.deepEqual(moveEnd(PART, 'from', 9999, CHART, 10), { from: PART.to - 10, to: PART.to });
  assert.deepEqual(moveEnd(PART, 'to', 9999, CHART, 10), { from: PART.from, to: CHART.to });
  assert.deepEqual(moveEnd(PART, 'to', -9999, CHART, 10), { from: PART.from, to: PART.from + 10 });
  assert.deepEqual(moveEnd(PART, 'both', 9999, CHART, 10), { from: CHART.to - 300, to: CHART.to });
  assert.deepEqual(moveEnd(PART, 'both', -9999, CHART, 10), { from: CHART.from, to: CHART.from + 300 });
});

test('a range in one parameter, and what is none', () => {
  assert.deepEqual(parseBounds(writeBounds(PART)), PART);
  assert.equal(writeBounds({ from: PART.from + 0.5, to: PART.to - 0.5 }), `${PART.from}-${PART.to}`);
  for (const wrong of [null, '', '1800000000', '1800000001-1800000000', '1-2', 'now-1800000000', '1800000000-1800000001-'])
    assert.equal(parseBounds(wrong), null, String(wrong));
});

test('what is excluded adds up', () => {
  const once = without(parseQuery('cpu{service_name="shop"}')!, 'version', '2.0');
  assert.equal(writeQuery(once), 'cpu{service_name="shop",version!="2.0"}');
  const twice = writeQuery(without(once, 'version', ''));
  assert.equal(twice, 'cpu{service_name="shop",version!="2.0",version!=""}');
  assert.equal(writeQuery(parseQuery(twice)!), twice);
});

test('series of different things are not stacked', () => {
  const series = [{ name: 'before', points: [[0, 5], [10, 5]] as [number, number][] },
    { name: 'after', points: [[10, 2]] as [number, number][] }];
  assert.deepEqual(stack(series, 10, true).data, [[0, 10, 20], [5, 5, 5], [null, 2, 2]]);
  assert.deepEqual(stack(series, 10).data, [[0, 10, 20], [5, 5, 5], [5, 7, 7]]);
});
