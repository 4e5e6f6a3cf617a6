// SPDX-License-Identifier: Apache-2.0
// Bands of requests, and what the slow ones do that others don't.

import assert from 'node:assert/strict';
import test from 'node:test';
import { readProfile } from '../flame/data/data';
import { bandOf, differences, fasterThan, selectorOf } from '../ui/data/requests';

test('a band is compared with what was faster', () => {
  const pairs = { p99: '-p99', 'p50-p90': '-p50', '250ms': '-250ms', '250ms+': '-250ms', '100ms-1s': '-100ms',
    errors: '', '-p50': '', '': '' };
  for (const [band, faster] of Object.entries(pairs)) assert.equal(fasterThan(band), faster, band);
  assert.equal(bandOf(1.5e6, 2e9), '1500us-2000000us');
  assert.equal(bandOf(0, 10), '1us-1us');
});

test('a route is a selector', () => {
  assert.equal(selectorOf({ service: 'shop', method: '', route: '/a"b' }), 'service="shop",route="/a\\"b"');
});

// main, and below it take, its lock and its state, and render.
const profile = (self: number[]) => readProfile({
  version: 1, kind: 'flame', title: '', notes: [], types: [{ name: 'wall', unit: 'nanoseconds' }],
  default_type: 0, strings: ['', 'main', 'take', '[lock cart]', '[lock]', 'render'],
  functions: { name: [1, 2, 3, 4, 5], file: [0, 0, 0, 0, 0], binary: [0, 0, 0, 0, 0] },
  nodes: { up: [1, 1, 1, 1, 4], function: [0, 1, 2, 3, 4], inlined: [] }, self: [self], dropped: 0,
});

test('waits are named by who waits, and what is less is left out', () => {
  assert.deepEqual(differences(profile([0, 0, 1, 0, 400, 5]), profile([0, 0, 0, 0, 0, 10])), [
    { name: 'take [lock cart] [lock]', slow: 400, rest: 0 }, { name: 'take', slow: 1, rest: 0 },
  ]);
  assert.deepEqual(differences(profile([0, 0, 0, 0, 0, 10]), profile([0, 0, 0, 0, 0, 10])), []);
});
