// SPDX-License-Identifier: Apache-2.0
// The URL's form of a view: it opens the same view, also in a tree whose nodes have other ids, and
// nonsense in it does no harm.

import assert from 'node:assert/strict';
import test from 'node:test';
import { readProfile } from '../flame/data/data';
import { findNodes, functionKey, nodeKey } from '../flame/data/keys';
import { decodeState, defaultState, encodeState, transformed, type State } from '../flame/state';
import { DocumentBuilder, large, service } from './synthetic';

const profile = readProfile(service(300));

test('a view survives its URL', () => {
  const state: State = {
    ...defaultState(profile), type: 2, view: 'sandwich', zoom: 12, search: 'a&b=#c%', regex: true,
    flip: true, func: 3, colour: 'binary', only: '', recursion: false, split: 'thread',
  };
  assert.deepEqual(decodeState(`#${encodeState(state, profile)}`, profile), state);
  assert.equal(encodeState(defaultState(profile), profile), '');
});

test('what is hidden, collapsed and open survives, too', () => {
  const start = { ...defaultState(profile), view: 'tree' as const, open: [0, 1, 2] };
  const state = transformed(start, profile,
    { hidden: [2, 5], recursion: true, fold: ['*', 'orderd'], only: 'libc.so.6' });
  assert.deepEqual(decodeState(encodeState(state, profile), profile), state);
});

test('the first view is the page’s own and stays out of the URL', () => {
  const both = defaultState(profile, 'both');
  assert.equal(encodeState(both, profile, 'both'), '');
  assert.equal(encodeState(both, profile), 'view=both');
  assert.equal(decodeState('', profile, 'both').view, 'both');
  assert.equal(decodeState('view=graph', profile, 'both').view, 'graph');
});

test('nonsense in a URL falls back to the default', () => {
  for (const fragment of [
    '#type=99&zoom=-1&function=1e9&view=__proto__&flip=maybe&%%%',
    '#hide=x.y.z&recursion=2&fold=nowhere.so&only=nowhere.so&colour=loud',
    `#zoom=${'9'.repeat(5000)}`,
  ])
    assert.deepEqual(decodeState(fragment, profile), defaultState(profile));
});

// The same stacks in another order: ids differ, names do not.
function stacks(order: string[][]) {
  const builder = new DocumentBuilder([{ name: 'samples', unit: 'count' }]);
  const known = new Map<string, number>([['', 0]]);
  for (const stack of order) {
    let path = '';
    for (const name of stack) {
      const parent = known.get(path)!;
      path += `;${name}`;
      if (!known.has(path)) known.set(path, builder.node(parent, builder.function(name), [1]));
    }
  }
  return readProfile(builder.document('', [], 0));
}

test('a zoomed frame is found in another document by its path', () => {
  const one = stacks([['a', 'b', 'c'], ['a', 'd'], ['e', 'b', 'c']]);
  const two = stacks([['x'], ['e', 'b', 'c'], ['a', 'd'], ['a', 'b', 'c']]);
  for (let n = 1; n < one.tree.size; n++) {
    const fragment = encodeState({ ...defaultState(one), zoom: n }, one);
    const { zoom } = decodeState(fragment, two);
    const names = (p: typeof one, node: number) => {
      const out: string[] = [];
      for (let at = node; at > 0; at = p.tree.parent[at]) out.push(p.names[p.tree.func[at]]);
      return out.join();
    };
    assert.equal(names(two, zoom), names(one, n));
  }
  assert.equal(decodeState(encodeState({ ...defaultState(two), zoom: 1 }, two), one).zoom, 0);
});

test('keys of a large tree do not collide', () => {
  const big = readProfile(large(50_000, 2000));
  const seen = new Map<string, string>();
  for (let n = 1; n < big.tree.size; n += 7) {
    const key = nodeKey(big.tree, big.names, n);
    const path: number[] = [];
    for (let at = n; at > 0; at = big.tree.parent[at]) path.push(big.tree.func[at]);
    const known = seen.get(key);
    assert.ok(known === undefined || known === path.join());
    seen.set(key, path.join());
  }
  const key = nodeKey(big.tree, big.names, 40_000);
  assert.equal(nodeKey(big.tree, big.names, findNodes(big.tree, big.names, [key])[0]), key);
  assert.notEqual(functionKey('ab'), functionKey('ba'));
});
