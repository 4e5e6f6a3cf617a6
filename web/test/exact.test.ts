// SPDX-License-Identifier: Apache-2.0
// What a page asks its server for where small frames were folded into "(other)", and what it shows.

import assert from 'node:assert/strict';
import test from 'node:test';
import { exactBy, sandwichOf, type AroundRequest } from '../flame/exact';
import { readProfile, type Profile } from '../flame/data/data';
import { defaultState } from '../flame/state';
import { DocumentBuilder } from './synthetic';

type Values = readonly [path: string[], now: number, before: number];

// A comparison; each path's parent comes before it.
function diffOf(rows: readonly Values[]): Profile {
  const builder = new DocumentBuilder([{ name: 'cpu', unit: 'nanoseconds' }]);
  const known = new Map<string, number>([['', 0]]);
  const base = [0];
  for (const [path, now, before] of rows) {
    const node = builder.node(known.get(path.slice(0, -1).join(';'))!, builder.function(path.at(-1)!));
    known.set(path.join(';'), node);
    builder.self[0][node] = now;
    base.push(before);
  }
  return readProfile({ ...builder.document('test', [], 0), kind: 'diff', base: [base], scale: [2] });
}

const picture = diffOf([[['main'], 1, 0], [['main', 'f'], 5, 1], [['main', '(other)'], 90, 80]]);
const around = {
  callers: diffOf([[['f'], 0, 0], [['f', 'main'], 50, 10], [['f', 'g'], 7, 0]]),
  callees: diffOf([[['f'], 17, 10], [['f', 'h'], 40, 0]]),
};

test('the sandwich of a comparison has all stacks, on both sides', () => {
  const { profile, sandwich } = sandwichOf(picture, around, picture.names.indexOf('f'), 1000, 400);
  const { callers, callees } = sandwich;
  assert.deepEqual([callers.values.total[0], callees.values.total[0]], [57, 57]);
  assert.deepEqual([callers.values.baseTotal?.[0], callees.values.baseTotal?.[0]], [20, 20]);
  assert.deepEqual([callees.whole, callees.wholeBase], [1000, 400]);
  assert.ok(profile.names.includes('h') && profile.names.includes('g'));
});

test('until the answer is there, nothing of the picture stands for it', async () => {
  const asked: AroundRequest[] = [];
  let changed: () => void = () => {};
  const change = new Promise<void>((resolve) => { changed = resolve; });
  const views = exactBy({
    table: () => Promise.reject(new Error('no table')),
    around: (request) => {
      asked.push(request);
      return Promise.resolve(around);
    },
  })(changed);
  const func = picture.names.indexOf('f');
  const state = { ...defaultState(picture), hidden: [picture.names.indexOf('main')], recursion: true, during: 'RUNNING' };
  const seen = { source: picture, profile: picture, state, whole: 1000, wholeBase: 400 };
  const before = views.sandwich(seen, func);
  assert.equal(before.shown, null);
  assert.match(before.note, /Loading/);
  await change;
  assert.equal(views.sandwich(seen, func).shown?.sandwich.callees.values.total[0], 57);
  assert.deepEqual(asked, [{ name: 'f', hide: ['main'], fold: [], only: '', recursion: true, during: 'RUNNING' }]);
  views.end();
});
