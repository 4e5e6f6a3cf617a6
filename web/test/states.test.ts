// SPDX-License-Identifier: Apache-2.0
// States of a profile: read, added up, coloured, kept through other trees; and the text of stacks.

import assert from 'node:assert/strict';
import test from 'node:test';
import { makeLook, PackageColours, pixelOf, stateColour } from '../flame/colour';
import { FlameDataError, readProfile } from '../flame/data/data';
import { findingWords, frameFacts } from '../flame/controls/facts';
import { foldedDiff, foldedStacks } from '../flame/data/folded';
import { graft } from '../flame/data/graft';
import { Model } from '../flame/data/model';
import { decodeState, defaultState, encodeState } from '../flame/state';
import { NONE, withStates } from '../flame/data/states';
import { derive } from '../flame/data/transform';

const LIGHT = { dark: false, safe: false };

// main, and below it run and wait; states are added by whoever asks for them.
function document(more: Record<string, unknown> = {}) {
  return {
    version: 1, kind: 'flame', title: '', notes: [], types: [{ name: 'wall', unit: 'nanoseconds' }],
    default_type: 0, strings: ['', 'main', 'run', 'wait'],
    functions: { name: [1, 2, 3], file: [0, 0, 0], binary: [0, 0, 0] },
    nodes: { up: [1, 1, 2], function: [0, 1, 2], inlined: [] }, self: [[0, 0, 40, 60]], dropped: 0,
    ...more,
  };
}
const STATES = { names: ['RUNNING', 'SLEEPING'], self: [[0, 0, 40, 5], [0, 0, 0, 50]] };

test('states are read, and wrong ones refused', () => {
  assert.equal(readProfile(document()).states, null);
  assert.deepEqual(readProfile(document({ states: STATES })).states?.names, STATES.names);
  for (const wrong of [7, {}, { names: ['a'], self: [] }, { names: ['a'], self: [[1]] },
    { names: [1], self: [[0, 0, 0, 0]] }, { names: ['a'], self: [[0, 0, 0, '1']] },
    { names: Array(17).fill('a'), self: Array(17).fill([0, 0, 0, 0]) }])
    assert.throws(() => readProfile(document({ states: wrong })), FlameDataError, JSON.stringify(wrong));
});

test('only one state is shown', () => {
  const profile = readProfile(document({ states: STATES }));
  const during = { hidden: [], recursion: false, fold: [], only: '', during: 'SLEEPING', span: '' };
  const { profile: out } = derive(profile, during);
  assert.deepEqual(out.names.filter((_, f) => out.tree.func.includes(f)), ['main', 'wait']);
  assert.deepEqual([...out.self[0]].filter((value) => value > 0), [50]);
  assert.equal(out.whole?.value[0], 100); // shares are of everything that was measured
  const model = new Model(out);
  assert.deepEqual(model.states(0)?.total.map((column) => column[0]), [0, 50]);
  // States that are not there yet, or that no sample has, leave everything.
  assert.equal(derive(readProfile(document()), during).profile.self[0].reduce((a, b) => a + b), 100);
  const address = encodeState({ ...defaultState(profile), during: 'SLEEPING', colour: 'state' }, profile);
  assert.equal(decodeState(address, profile).during, 'SLEEPING');
  assert.equal(decodeState('state=nothing', profile).during, '');
  assert.equal(decodeState('state=late', readProfile(document())).during, 'late');
});

test('a frame has the colour of the state that most of it was in', () => {
  const profile = readProfile(document({ states: STATES }));
  const model = new Model(profile);
  const states = model.states(0)!;
  assert.deepEqual([...states.main], [1, 1, 0, 1]);
  assert.equal(states.total[0][0], 45);
  const look = makeLook(profile, 0, model.graph(0), new PackageColours(profile, LIGHT, 'state'), states);
  assert.equal(look.fill(2), pixelOf(stateColour('RUNNING', LIGHT)));
  assert.equal(look.fill(3), pixelOf(stateColour('SLEEPING', LIGHT)));
  assert.notEqual(look.fill(2), look.fill(3));
  const facts = frameFacts(profile, profile.types[0], model.graph(0), { node: 3, rest: 0 }, 0, states);
  assert.deepEqual(facts.rows.slice(2).map(({ label, cells }) => [label, cells[1]]),
    [['SLEEPING', '50.0%'], ['RUNNING', '5.00%']]);
});

test('the states of threads are told apart', () => {
  const states = ['running', 'runnable', 'lock', 'disk', 'network', 'pipe', 'child', 'io_uring', 'channel', 'sleep', 'other'];
  for (const scheme of [LIGHT, { dark: true, safe: false }, { dark: false, safe: true }, { dark: true, safe: true }])
    assert.equal(new Set(states.map((name) => stateColour(name, scheme))).size, states.length);
});

test('what has no state counts against those that are known', () => {
  const self = [[0, 0, 4, 1], [0, 0, 0, 2]];
  const states = new Model(readProfile(document({ states: { names: ['a', 'b'], self } }))).states(0)!;
  assert.deepEqual([...states.main], [NONE, NONE, NONE, NONE]); // of 40, 4; of 60, 3
  assert.equal(states.unknown, 93);
});

test('states of another type, or of no sample, are none', () => {
  const profile = readProfile(document({ states: { names: ['x'], self: [[0, 0, 0, 0]] } }));
  assert.deepEqual([...new Model(profile).states(0)!.main], [NONE, NONE, NONE, NONE]);
  assert.equal(new Model(profile).states(1), null);
});

test('hiding a frame leaves its states with its caller', () => {
  const profile = readProfile(document({ states: STATES }));
  const { profile: out } = derive(profile, { hidden: [2], recursion: false, fold: [], only: '', during: '', span: '' });
  assert.deepEqual(out.states!.self.map((column) => [...column]), [[0, 5, 40], [0, 50, 0]]);
});

test('a profile of each state is put together by names', () => {
  const whole = readProfile(document());
  // The part has no run, other numbers, and a frame that the whole does not have.
  const part = readProfile(document({
    strings: ['', 'main', 'wait', 'deeper'], nodes: { up: [1, 1, 1], function: [0, 1, 2], inlined: [] },
    self: [[1, 0, 10, 50]],
  }));
  const { states } = withStates(whole, [['SLEEPING', part]]);
  assert.deepEqual(states, { names: ['SLEEPING'], self: [Float64Array.from([1, 0, 0, 60])] });
});

test('more detail keeps states where both have them', () => {
  const whole = readProfile(document({ states: STATES }));
  const grown = graft(whole, readProfile(document({ states: STATES })), ['main']);
  assert.deepEqual(grown.states!.self.map((column) => [...column]), STATES.self);
  assert.equal(graft(whole, readProfile(document()), ['main']).states, null);
});

test('what is known of a change is a sentence', () => {
  assert.equal(findingWords({ interval: [-2e6, 9e6], verdict: 'noise', cause: null, moreSeconds: 0 }, 'nanoseconds'),
    'Its total changed by \u22122\u00a0ms to +9\u00a0ms: within the noise.');
  assert.equal(findingWords({ interval: null, verdict: 'grew', cause: null, moreSeconds: 0 }, 'count'), 'It grew.');
  assert.equal(findingWords({ interval: null, verdict: null, cause: null, moreSeconds: 0 }, 'count'), '');
  assert.equal(findingWords({ interval: null, verdict: 'undecided', cause: null, moreSeconds: 600 }, 'count'),
    'Undecided; about 10\u00a0min more on each side would settle it.');
  assert.equal(findingWords({ interval: null, verdict: 'grew', cause: 'cost per request', moreSeconds: 0 }, 'count'),
    'It grew per request.');
});

test('stacks as text: one line each, and no name makes two', () => {
  const profile = readProfile(document({ strings: ['', 'a;b', 'c\nd 9', 'wait'] }));
  assert.equal(foldedStacks(profile, 0), 'a:b;c d 9 40\na:b;wait 60\n');
});

test('stacks of a comparison as text: before and after, also where one is nothing', () => {
  const profile = readProfile(document({
    kind: 'diff', base: [[0, 0, 10, 0]], self: [[0, 0, 40, 60]], scale: [2], normalize: 'total',
  }));
  assert.equal(foldedDiff(profile, 0), 'main;run 20 40\nmain;wait 0 60\n');
});
