// SPDX-License-Identifier: Apache-2.0
// Times of samples: read, refused when wrong, added up by cell and by span, kept through other trees.

import assert from 'node:assert/strict';
import test from 'node:test';
import { chipsOf } from '../flame/controls/chips';
import { FlameDataError, readProfile } from '../flame/data/data';
import { graft } from '../flame/data/graft';
import { decodeState, defaultState, encodeState } from '../flame/state';
import { columnLength, firstFrom, formatSpan, HEAT_ROWS, heatOf, readSpan, threadName } from '../flame/data/times';
import { derive } from '../flame/data/transform';

const TIMES = {
  start: 1700000000.5,
  threads: [{ name: 'worker', process: 'shop', pid: 7, tid: 8, samples: 3 }, { name: '', pid: 7, tid: 9, samples: 1 }],
  node: [2, 3, 3, 2], after: [0, 1000, 2_000_000, 500_000], value: [40, 5, 45, 10], state: [0, 1, 1, -1],
};
const STATES = { names: ['RUNNING', 'SLEEPING'], self: [[0, 0, 40, 0], [0, 0, 0, 50]] };

// main, and below it run and wait.
function document(more: Record<string, unknown> = {}) {
  return {
    version: 1, kind: 'flame', title: '', notes: [], types: [{ name: 'wall', unit: 'nanoseconds' }],
    default_type: 0, strings: ['', 'main', 'run', 'wait'],
    functions: { name: [1, 2, 3], file: [0, 0, 0], binary: [0, 0, 0] },
    nodes: { up: [1, 1, 2], function: [0, 1, 2], inlined: [] }, self: [[0, 0, 50, 50]], dropped: 0,
    states: STATES, times: TIMES, ...more,
  };
}
const ALL = { hidden: [], recursion: false, fold: [], only: '', during: '', span: '' };

test('times are read, and wrong ones refused', () => {
  const times = readProfile(document()).times!;
  assert.deepEqual([...times.at], [0, 1000, 2_001_000, 500_000]);
  assert.deepEqual(times.threads.map(({ first, count }) => [first, count]), [[0, 3], [3, 1]]);
  assert.equal(times.length, 2_001_001);
  assert.deepEqual(times.threads.map(threadName), ['worker (8)', 'thread (9)']);
  assert.equal(readProfile(document({ times: undefined })).times, undefined);
  assert.equal(readProfile(document({ states: undefined })).times!.state, null);
  for (const wrong of [7, {}, { ...TIMES, threads: [{ samples: 0 }] }, { ...TIMES, threads: [{ samples: 9 }] },
    { ...TIMES, node: [2, 3, 3, 4] }, { ...TIMES, node: [2, 3, 3] }, { ...TIMES, after: [0, -1, 0, 0] },
    { ...TIMES, after: [9e15, 9e15, 9e15, 0] }, { ...TIMES, value: ['1', 1, 1, 1] }, { ...TIMES, state: [2, 0, 0, 0] },
    { ...TIMES, threads: [{ name: 1, samples: 4 }] }, { ...TIMES, start: 'now' }])
    assert.throws(() => readProfile(document({ times: wrong })), FlameDataError, JSON.stringify(wrong));
});

test('a span has its own values, and shares stay shares of everything', () => {
  const profile = readProfile(document());
  const { profile: out } = derive(profile, { ...ALL, span: '900-600000' });
  assert.deepEqual([...out.self[0]].filter((value) => value > 0), [10, 5]);
  assert.equal(out.whole?.value[0], 100);
  const { profile: sleeping } = derive(profile, { ...ALL, span: '0-3000000', during: 'SLEEPING' });
  assert.deepEqual([...sleeping.self[0]].filter((value) => value > 0), [50]);
  const state = { ...defaultState(profile), view: 'time' as const, span: '900-600000' };
  const address = encodeState(state, profile);
  assert.deepEqual([decodeState(address, profile).span, decodeState(address, profile).view], ['900-600000', 'time']);
  // Without times there is neither.
  const plain = readProfile(document({ times: undefined }));
  assert.deepEqual([decodeState(address, plain).span, decodeState(address, plain).view], ['', 'graph']);
  for (const wrong of ['', '5-5', '9-1', 'a-b', '-1-5']) assert.equal(readSpan(wrong), null);
  assert.equal(chipsOf(profile, { ...ALL, span: '900-600000' })[0].text, `time: ${formatSpan({ from: 900, to: 600000 })}`);
});

test('a heat map has every sample in one cell', () => {
  const { times } = readProfile(document());
  const heat = heatOf(times!, -1);
  assert.equal(heat.cells.reduce((a, b) => a + b), 100);
  assert.equal(heat.cells.length, heat.columns * HEAT_ROWS);
  assert.equal(heatOf(times!, 1).cells.reduce((a, b) => a + b), 50);
  assert.equal(columnLength(60e6), 1e6);
  assert.equal(columnLength(4.5e6), 2e5);
  assert.equal(columnLength(3600e6), 30e6);
  for (const length of [1, 5e4, 1e6, 3e6, 1e9, 1e11, 1e14]) {
    const column = columnLength(length);
    assert.ok(column > 0 && length / column <= 301, `${length}: ${column}`);
  }
  assert.equal(firstFrom(times!, times!.threads[0], 1000), 1);
  assert.equal(firstFrom(times!, times!.threads[0], 1e9), 3);
});

test('a part with more detail keeps the times of all samples', () => {
  const whole = readProfile(document({
    strings: ['', 'main', '(other)'], functions: { name: [1, 2], file: [0, 0], binary: [0, 0] },
    nodes: { up: [1, 1], function: [0, 1], inlined: [] }, self: [[0, 0, 100]], states: undefined,
    times: { ...TIMES, node: [2, 2, 2, 2] },
  }));
  const grown = graft(whole, readProfile(document({ states: undefined })), ['main']);
  const names = [...grown.times!.node].map((n) => grown.names[grown.tree.func[n]]);
  assert.deepEqual(names, ['run', 'wait', 'wait', 'run']);
});
