// SPDX-License-Identifier: Apache-2.0
// The server page's modules that touch no page: times, queries, values, addresses, completion and
// the chart's stacking.

import assert from 'node:assert/strict';
import test from 'node:test';
import { duringState } from '../ui/data/exact';
import { isMemory, memoryLevels, memoryViews } from '../ui/data/memory';
import { moreParams } from '../ui/data/more';
import { narrow } from '../ui/data/narrow';
import { intervalOf } from '../ui/refresh';
import { address } from '../ui/route';
import { labelOf, parseQuery, quote, withLabel, writeQuery } from '../ui/selection';
import { evenDigits, largest, meanOf, peakOf, SERIES_MAX, spread, stack, type ChartSeries } from '../ui/data/stack';
import { before, boundsOf, formatAge, formatBounds, formatDuration, formatRange, formatTick,
  formatTime, addressProblem, moved, parseTime, rangeFrom, rangeOf, rangeParams, rangeProblem, shortRange, stepOf,
  wider } from '../ui/time';
import { formatRate, meaningOf, rate } from '../ui/data/values';

const NOW = 1_800_000_000;

test('times: relative, unix, ISO, and what is none', () => {
  assert.equal(parseTime('now', NOW), NOW);
  assert.equal(parseTime(' now-1h30m ', NOW), NOW - 5400);
  assert.equal(parseTime('now-2w1d', NOW), NOW - 15 * 86400);
  assert.equal(parseTime('1700000000.5', NOW), 1_700_000_000.5);
  assert.equal(parseTime('2026-11-15T08:00:00Z', NOW), Date.UTC(2026, 10, 15, 8) / 1000);
  for (const wrong of ['', 'now-', 'now+1h', 'now-1y', 'yesterday', 'now-1h ago'])
    assert.equal(parseTime(wrong, NOW), null, wrong);
});

test('a range that makes no sense is the hour before its end', () => {
  assert.deepEqual(boundsOf({ from: 'now-1h', to: 'now' }, NOW), { from: NOW - 3600, to: NOW });
  assert.deepEqual(boundsOf({ from: 'now', to: 'now-1h' }, NOW), { from: NOW - 7200, to: NOW - 3600 });
  assert.deepEqual(boundsOf({ from: '??', to: '??' }, NOW), { from: NOW - 3600, to: NOW });
});

test('a time in an address that cannot be read is an error', () => {
  assert.equal(rangeProblem({ from: 'now-1h', to: 'now' }, NOW), '');
  assert.match(rangeProblem({ from: 'yesterday', to: 'now' }, NOW), /Invalid time “yesterday”/);
  assert.match(rangeProblem({ from: 'now-1h', to: 'soon' }, NOW), /Invalid time “soon”/);
  assert.match(rangeProblem({ from: 'now', to: 'now-1h' }, NOW), /ends before/);
  assert.equal(addressProblem(new URLSearchParams('from=now-5m'), NOW), '');
  assert.match(addressProblem(new URLSearchParams('base_from=x&base_to=now'), NOW), /Invalid time “x”/);
  assert.match(addressProblem(new URLSearchParams('base_from=x'), NOW), /Invalid time “x”/);
  assert.match(addressProblem(new URLSearchParams('base_to=x'), NOW), /Invalid time “x”/);
  assert.equal(addressProblem(new URLSearchParams('base_from=now-2h'), NOW), '');
  assert.match(addressProblem(new URLSearchParams('part=1-2'), NOW, true), /Invalid range “1-2”/);
  assert.equal(addressProblem(new URLSearchParams('part=1700000000-1700000060'), NOW, true), '');
  assert.equal(addressProblem(new URLSearchParams('part=lines'), NOW), '');
});

test('little data is shown in a short range', () => {
  assert.deepEqual(shortRange(NOW - 60, NOW), { from: 'now-5m', to: 'now' });
  assert.deepEqual(shortRange(NOW - 600, NOW), { from: 'now-15m', to: 'now' });
  assert.equal(shortRange(NOW - 1200, NOW), null, 'the usual hour');
  assert.equal(shortRange(NOW - 86400, NOW), null);
});

test('views refresh as often as the address says', () => {
  assert.deepEqual(intervalOf(new URLSearchParams(''), 'off'), ['off', 0]);
  assert.deepEqual(intervalOf(new URLSearchParams(''), '10s'), ['10s', 10]);
  assert.deepEqual(intervalOf(new URLSearchParams('refresh=1m'), 'off'), ['1m', 60]);
  assert.deepEqual(intervalOf(new URLSearchParams('refresh=1ms'), '10s'), ['off', 0]);
});

test('a range goes into an address and back, the default not at all', () => {
  assert.deepEqual(rangeFrom(new URLSearchParams('')), { from: 'now-1h', to: 'now' });
  assert.deepEqual(rangeParams({ from: 'now-1h', to: 'now' }), { from: undefined, to: undefined });
  const range = rangeOf({ from: 100.7, to: 200.2 });
  assert.deepEqual(range, { from: '100', to: '201' }, 'a range never becomes narrower');
  assert.equal(rangeFrom(new URLSearchParams({ from: 'now-5m' })).from, 'now-5m');
});

test('ways around a range: before, wider, earlier and later, never into the future', () => {
  const bounds = { from: NOW - 200, to: NOW - 100 };
  assert.deepEqual(before(bounds), { from: NOW - 300, to: NOW - 200 });
  assert.deepEqual(before(bounds, 86400), { from: NOW - 200 - 86400, to: NOW - 100 - 86400 });
  assert.deepEqual(wider(bounds, NOW), { from: NOW - 250, to: NOW - 50 });
  assert.deepEqual(wider({ from: NOW - 100, to: NOW }, NOW), { from: NOW - 200, to: NOW });
  assert.deepEqual(moved(bounds, -1, NOW), { from: NOW - 250, to: NOW - 150 });
  assert.deepEqual(moved({ from: NOW - 110, to: NOW - 10 }, 1, NOW), { from: NOW - 100, to: NOW });
});

test('steps are round, and no chart has fewer than 300 where windows of ten seconds make as many', () => {
  assert.equal(stepOf({ from: 0, to: 300 }), 10);
  assert.equal(stepOf({ from: 0, to: 3600 }), 10);
  assert.equal(stepOf({ from: 0, to: 86400 }), 240);
  assert.equal(stepOf({ from: 0, to: 14 * 86400 }), 3600);
  assert.equal(stepOf({ from: 0, to: 1e9 }), 86400);
  for (const span of [60, 1e3, 1e4, 1e5, 1e6])
    assert.ok(span / stepOf({ from: 0, to: span }) >= Math.min(300, span / 10));
});

test('times for people', () => {
  assert.equal(formatTime(0, true), '1970-01-01 00:00:00 UTC');
  assert.equal(formatBounds({ from: 0, to: 3661 }, true), '1970-01-01 00:00:00 – 01:01:01 UTC');
  assert.equal(formatBounds({ from: 0, to: 86400 }, true),
    '1970-01-01 00:00:00 – 1970-01-02 00:00:00 UTC');
  assert.equal(formatRange({ from: 'now-15m', to: 'now' }, true), 'Last 15 minutes');
  assert.deepEqual([3.4, 90, 7200, 400000].map(formatAge), ['3 s ago', '2 min ago', '2 h ago', '5 days ago']);
  assert.deepEqual([59, 600, 5400, 40000, 200000].map(formatDuration),
    ['59 s', '10 min', '1.5 h', '11 h', '2.3 days']);
  assert.equal(formatTick(3600 * 13 + 300, 300, true), '13:05');
  assert.equal(formatTick(15, 5, true), '00:00:15');
  assert.equal(formatTick(86400, 3600, true), '01-02', 'midnight is the day');
  assert.equal(formatTick(86400 * 3, 86400, true), '01-04');
});

test('queries are read, written and refused', () => {
  const text = 'cpu{service_name="shop",host=~"web-.*",env!="te\\"st",x!~"a\\\\b"}';
  const selection = parseQuery(text)!;
  assert.equal(writeQuery(selection), text);
  assert.equal(labelOf(selection, 'service_name'), 'shop');
  assert.equal(labelOf(selection, 'host'), '', 'a pattern is no value');
  assert.deepEqual(parseQuery('wall'), { type: 'wall', matchers: [] });
  assert.equal(parseQuery('cpu{service="x"}')!.matchers[0].name, 'service_name');
  for (const wrong of ['cpu{', 'cpu{a}', 'cpu{a=b}', 'cpu{a="b}', 'cpu{a="b" c="d"}', 'a b{}', 'cpu}{'])
    assert.equal(parseQuery(wrong), null, wrong);
  assert.equal(quote('a"b\\c\nd'), '"a\\"b\\\\c\\nd"');
});

test('a label is set once, and the service comes first', () => {
  let selection = withLabel({ type: 'cpu', matchers: [] }, 'host', 'a');
  selection = withLabel(selection, 'host', 'b', '!=');
  selection = withLabel(selection, 'service_name', 'shop');
  assert.equal(writeQuery(selection), 'cpu{service_name="shop",host!="b"}');
  assert.equal(writeQuery(withLabel(selection, 'host', '')), 'cpu{service_name="shop"}');
});

test('what values mean over time', () => {
  const cpu = meaningOf('process_cpu:cpu:nanoseconds:cpu:nanoseconds');
  assert.equal(cpu.words, 'CPU cores in use');
  assert.equal(rate(cpu, [0, 6e9, 1.5e9, 4], 10), 1.5, 'per covered second');
  assert.equal(rate(cpu, [0, 15e9, null, 0], 10), 1.5);
  assert.equal(formatRate(cpu, 1.5), '1.50');
  assert.equal(formatRate(cpu, 0.0123), '0.012');
  const heap = meaningOf('memory:inuse_space:bytes:space:bytes');
  assert.ok(heap.level);
  assert.equal(rate(heap, [0, 4096, 4096, 10], 10), 4096);
  assert.match(formatRate(heap, 4096), /^4.KiB$/);
  assert.match(formatRate(meaningOf('memory:alloc_space:bytes:space:bytes'), 4096), /^4.KiB\/s$/);
  assert.equal(meaningOf('off_cpu:wait:nanoseconds::').words, 'Seconds per second');
  assert.equal(meaningOf('').unit, '');
});

test('addresses leave out what is not set and escape what is', () => {
  assert.equal(address('/explore', { a: undefined, b: '' }), '/explore');
  assert.equal(address('/x', { query: 'cpu{a="b&c"}', group: ['1', '2'] }),
    '/x?query=cpu%7Ba%3D%22b%26c%22%7D&group=1&group=2');
});

test('completion: beginnings first, then what holds it, and not too many', () => {
  const options = ['web-1', 'db-web', 'WEB-2', 'cache'];
  assert.deepEqual(narrow(options, 'web'), ['web-1', 'WEB-2', 'db-web']);
  assert.deepEqual(narrow(options, ''), options);
  assert.deepEqual(narrow(options, '.*'), []);
  assert.equal(narrow(Array.from({ length: 500 }, (_, i) => `s${i}`), 's').length, 100);
});

test('a chart has the largest series, and the others together', () => {
  const series = Array.from({ length: SERIES_MAX + 3 }, (_, i) =>
    ({ name: `s${i}`, points: [[10, i], [20, 1]] as [number, number][] }));
  const shown = largest(series);
  assert.equal(shown.length, SERIES_MAX);
  assert.equal(shown[0].name, `s${SERIES_MAX + 2}`);
  assert.equal(shown[SERIES_MAX - 1].name, 'others');
  const sum = (list: ChartSeries[]) =>
    list.flatMap(({ points }) => points).reduce((total, [, value]) => total + value, 0);
  assert.equal(sum(shown), sum(series));
  assert.deepEqual(largest(series.slice(0, 2)).map(({ name }) => name), ['s1', 's0']);
  assert.deepEqual(largest([]), []);
});

test('what is looked at now and then stands for the time between', () => {
  assert.deepEqual(spread([[0, 4], [10, 6], [20, 8]], 10), [[0, 4], [10, 6], [20, 8]]);
  assert.deepEqual(spread([[0, 4, 5], [20, 8, 5], [40, 2, 5]], 10),
    [[0, 4], [10, 4], [20, 8], [30, 8], [40, 2], [50, 2]]);
  // A gap is one, and what comes early is not counted twice.
  assert.deepEqual(spread([[0, 4], [20, 8], [100, 2], [110, 2], [130, 2]], 10).map(([time]) => time),
    [0, 10, 20, 30, 100, 110, 120, 130, 140]);
  assert.deepEqual(spread([[0, 4, 3]], 10), [[0, 4, 3]]);
  assert.deepEqual(spread([], 10), []);
});

test('stacking aligns times and adds up from below', () => {
  const { data, own } = stack([
    { name: 'a', points: [[10, 1], [30, 3]] }, { name: 'b', points: [[20, 5], [30, 7]] },
  ], 10);
  assert.deepEqual(data, [[10, 20, 30, 40], [1, 0, 3, 3], [1, 5, 10, 10]], 'the last step has an end');
  assert.deepEqual(stack([], 10).data, [[]]);
  // Two short pushes in neighbouring steps of ten minutes are two points, and a gap is a gap.
  assert.deepEqual(stack([{ name: 'a', points: [[0, 1, 10], [600, 2, 10], [1800, 3, 240]] }], 600).data,
    [[0, 30, 600, 630, 1800, 2400], [1, null, 2, null, 3, 3]]);
  assert.deepEqual(own, [[1, null, 3], [null, 5, 7]]);
  assert.equal(meanOf([[10, 1], [30, 3]]), 2);
  assert.equal(peakOf([[10, 1], [30, 3]]), 3);
  assert.equal(meanOf([]) + peakOf([]), 0);
});

test('a part of the tree is asked for by its path, or with the whole when that is too long', () => {
  assert.deepEqual(moreParams(['main', 'f']), { max_nodes: '65536', focus: ['main', 'f'] });
  assert.deepEqual(moreParams([]), { max_nodes: '65536' });
  assert.equal(moreParams([], true).max_nodes, '1048576');
  assert.deepEqual(moreParams(['f'], true), { max_nodes: '1048576', focus: ['f'] });
  assert.equal(moreParams(['x'.repeat(10_000)]).focus, undefined);
  assert.equal(moreParams(Array.from({ length: 900 }, () => 'f')).focus, undefined);
});

test('a state is asked for as a label of the selection', () => {
  const selection = { query: 'wall{service_name="a"}', from: '1', to: '2' };
  assert.deepEqual(duringState(selection, ''), selection);
  assert.deepEqual(duringState(selection, 'off "x"'),
    { ...selection, query: 'wall{service_name="a",state="off \\"x\\""}' });
  assert.throws(() => duringState({ query: 'a{b' }, 'off'), /no labels/);
});

test('the numbers of an axis have the same digits, and units are left alone', () => {
  const two = (value: number) => (value === 0 ? '0' : value.toPrecision(2));
  assert.deepEqual(evenDigits([0, 0.05, 0.1, 0.15], two), ['0', '0.05', '0.10', '0.15']);
  assert.deepEqual(evenDigits([0, 1, 2], two), ['0', '1', '2']);
  assert.deepEqual(evenDigits([0, 1e6], (value) => `${value / 1e6} MB`), ['0 MB', '1 MB']);
});

test('memory: views and levels that are there, in an order of their own', () => {
  const types = ['rss_limit', 'alloc_space', 'rss', 'inuse_space', 'rss_new'].map((sample_type) => ({
    id: `memory:${sample_type}:bytes:space:bytes`, name: 'memory', sample_type, sample_unit: 'bytes',
    period_type: 'space', period_unit: 'bytes' }));
  assert.deepEqual(memoryViews(types).map(({ words }) => words), ['Live bytes', 'Allocated bytes', 'Resident']);
  assert.deepEqual(memoryLevels(types).map(({ id }) => id.split(':')[1]), ['rss', 'inuse_space', 'rss_limit']);
  assert.deepEqual(memoryViews([]), []);
  assert.ok(isMemory('memory:rss:bytes:space:bytes'));
  assert.ok(!isMemory('process_cpu:cpu:nanoseconds:cpu:nanoseconds'));
});
