// SPDX-License-Identifier: Apache-2.0
// Hiding, collapsing and filtering, on trees small enough to check by hand, and what must hold for
// any tree: no value is lost and no value is made.

import assert from 'node:assert/strict';
import test from 'node:test';
import { chipsOf } from '../flame/controls/chips';
import { readProfile, type Profile } from '../flame/data/data';
import { frameItems, type FrameActions } from '../flame/controls/frame-menu';
import { findPath, graft } from '../flame/data/graft';
import { Model } from '../flame/data/model';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { libraryOf } from '../flame/data/library';
import { derive, isLibrary, type Transform } from '../flame/data/transform';
import { heavyPath, visibleNodes } from '../flame/view/tree-view';
import { DocumentBuilder, large, service, serviceDiff } from './synthetic';

const NOTHING: Transform = { hidden: [], recursion: false, fold: [], only: '', during: '', span: '' };

// Frames are "name@binary", stacks root-first.
function fromStacks(stacks: Record<string, number>): Profile {
  const builder = new DocumentBuilder([{ name: 'samples', unit: 'count' }]);
  const known = new Map<string, number>([['', 0]]);
  for (const [stack, value] of Object.entries(stacks)) {
    let path = '';
    for (const frame of stack.split(';')) {
      const parent = known.get(path)!;
      const [name, binary = ''] = frame.split('@');
      path += `;${frame}`;
      if (!known.has(path))
        known.set(path, builder.node(parent, builder.function(name, '', binary)));
    }
    builder.self[0][known.get(path)!] += value;
  }
  return readProfile(builder.document('test', [], 0));
}

// Every stack with a value, as fromStacks takes them.
function stacksOf({ tree, names, self }: Profile): Record<string, number> {
  const out: Record<string, number> = {};
  for (let n = 0; n < tree.size; n++) {
    if (self[0][n] === 0) continue;
    const path: string[] = [];
    for (let at = n; at > 0; at = tree.parent[at]) path.unshift(names[tree.func[at]]);
    out[path.join(';')] = (out[path.join(';')] ?? 0) + self[0][n];
  }
  return out;
}

const shown = (stacks: Record<string, number>, t: Partial<Transform>) =>
  stacksOf(derive(fromStacks(stacks), { ...NOTHING, ...t }).profile);

test('nothing to do gives the profile itself', () => {
  const profile = fromStacks({ 'a;b': 1 });
  assert.equal(derive(profile, NOTHING).profile, profile);
});

test('a hidden function leaves its value with its caller, and its callees meet', () => {
  const profile = fromStacks({ 'a;x': 1, 'a;x;b': 2, 'a;b': 4, 'x;c': 8 });
  const hidden = [profile.names.indexOf('x')];
  const { profile: out, of } = derive(profile, { ...NOTHING, hidden });
  assert.deepEqual(stacksOf(out), { 'a': 1, 'a;b': 6, 'c': 8 });
  assert.equal(of[findPath(profile, ['a', 'x', 'b'])], of[findPath(profile, ['a', 'b'])]);
});

test('recursion, direct and through others, is one frame', () => {
  assert.deepEqual(shown({ 'a;a;a;b': 1, 'a;b': 2 }, { recursion: true }), { 'a;b': 3 });
  assert.deepEqual(shown({ 'a;b;a;c': 5, 'a;b': 1, 'd;a': 2 }, { recursion: true }),
    { 'a;c': 5, 'a;b': 1, 'd;a': 2 });
});

test('a run of a library’s frames is one frame with its name', () => {
  const stacks = { 'main@app;f@libx.so.1;g@libx.so.1;h@app': 1, 'main@app;g@libx.so.1': 2,
    'main@app;m@libc.so.6': 4 };
  assert.deepEqual(shown(stacks, { fold: ['libx.so.1'] }),
    { 'main;libx.so.1;h': 1, 'main;libx.so.1': 2, 'main;m': 4 });
  assert.deepEqual(shown(stacks, { fold: ['*'] }),
    { 'main;libx.so.1;h': 1, 'main;libx.so.1': 2, 'main;libc.so.6': 4 });
});

test('only the stacks through a binary count, and shares stay shares of everything', () => {
  const profile = fromStacks({ 'main@app;m@libc.so.6;k@kernel': 1, 'main@app': 2, 'n@app': 4 });
  const { profile: out } = derive(profile, { ...NOTHING, only: 'libc.so.6', during: '', span: '' });
  assert.deepEqual(stacksOf(out), { 'main;m;k': 1 });
  assert.equal(out.tree.size, 4);
  assert.equal(new Model(out).graph(0).whole, 7);
});

test('what counts as a library', () => {
  for (const yes of ['libc.so.6', '/usr/lib/libz.so', '[kernel]', 'Foo.dylib', 'a.DLL'])
    assert.ok(isLibrary(yes), yes);
  for (const no of ['app', '/usr/bin/python3.11', '', 'also', 'orders.jar'])
    assert.ok(!isLibrary(no), no);
});

// The server has the same table.
test('whose code a function is, in Go, Python, JVM, Node, Ruby, Rust and C++', () => {
  const lines = readFileSync(join(process.env.WEB!, '../tests/fixtures/libraries.tsv'), 'utf8').replace(/\n$/, '').split('\n');
  assert.ok(lines.length > 30);
  for (const line of lines) {
    const [name, file, binary, library] = line.split('\t');
    assert.equal(libraryOf(name, file, binary), library, line);
  }
});

test('my code only: callers have what libraries take', () => {
  const source = fromStacks({ 'main.main@app;java.util.HashMap.get@;shop.Cart.add@;malloc@libc.so.6': 5,
    'main.main@app;malloc@libc.so.6': 2, 'java.lang.Thread.run@;shop.Cart.add@': 3 });
  assert.deepEqual(stacksOf(derive(source, { ...NOTHING, fold: ['-'] }).profile),
    { 'main.main;shop.Cart.add': 5, 'main.main': 2, 'shop.Cart.add': 3 });
  assert.deepEqual(stacksOf(derive(source, { ...NOTHING, fold: ['*'] }).profile),
    { 'main.main;java;shop.Cart.add;libc.so.6': 5, 'main.main;libc.so.6': 2, 'java;shop.Cart.add': 3 });
});

test('values are neither lost nor made, and callers come before callees', () => {
  for (const source of [readProfile(service(800)), readProfile(serviceDiff(800)),
    readProfile(large(5000, 200))]) {
    const sums = (columns: Float64Array[]) =>
      columns.map((column) => Math.round(column.reduce((a, v) => a + v, 0)));
    for (const t of [
      { ...NOTHING, hidden: [0, 3, 4, 5] }, { ...NOTHING, recursion: true },
      { ...NOTHING, fold: ['*'] }, { ...NOTHING, fold: ['-'] }, { hidden: [1, 2], recursion: true, fold: ['*', 'orderd'], only: '', during: '', span: '' },
    ]) {
      const { profile, of, from } = derive(source, t);
      assert.deepEqual(sums(profile.self), sums(source.self));
      assert.deepEqual(sums(profile.base), sums(source.base));
      for (let n = 1; n < profile.tree.size; n++) {
        assert.ok(profile.tree.parent[n] < n);
        assert.equal(of[from[n]], n);
      }
    }
  }
});

test('everything hidden is an empty tree that can still be looked at', () => {
  const source = fromStacks({ 'a;b': 3 });
  const { profile } = derive(source, { ...NOTHING, hidden: [0, 1] });
  assert.equal(profile.tree.size, 1);
  assert.equal(new Model(profile).graph(0).values.total[0], 3);
  assert.equal(new Model(profile).sandwich(0, 0)?.callers.tree.size, 1);
});

test('every chip undoes one thing', () => {
  const source = fromStacks({ 'a@app;b@libc.so.6': 3 });
  const t: Transform = { hidden: [0, 1], recursion: true, fold: ['*', 'app'], only: 'app', during: '', span: '' };
  const chips = chipsOf(source, t);
  assert.deepEqual(chips.map(({ text }) => text), ['hidden: a', 'hidden: b', 'recursion collapsed',
    'libraries collapsed', 'collapsed: app', 'only through app']);
  assert.deepEqual(chips[0].without, { hidden: [1] });
  assert.deepEqual(chips[4].without, { fold: ['*'] });
  const rest = chips.reduce<Transform>((now, chip) => ({ ...now, ...chip.without }), t);
  assert.equal(rest.only, '');
});

test('the menu offers what the page around it can do', () => {
  const source = fromStacks({ [`a@libc.so.6;${'(other)'}`]: 3, 'a@libc.so.6;b': 1 });
  const none = () => undefined;
  const act: FrameActions = { focus: none, sandwich: none, copy: none, hide: none, simplify: none };
  const labels = (func: number, node: number, actions: FrameActions, t = NOTHING) =>
    frameItems(source, source.names.length, t, { node, func }, actions).map(({ label }) => label);
  assert.deepEqual(labels(0, 1, act), ['Focus on this frame', 'Callers and callees', 'Copy the name',
    'Hide this function', 'Collapse libc.so.6', 'Only stacks through libc.so.6']);
  assert.ok(labels(0, 1, { ...act, openFunction: none }).includes('Open the function’s page'));
  assert.ok(!labels(0, -1, act).includes('Focus on this frame'));
  const other = source.names.indexOf('(other)');
  assert.deepEqual(labels(other, 2, { ...act, expand: none }), ['Show contents']);
  assert.deepEqual(labels(other, 2, act), ['Focus on this frame']);
});

test('a part with more detail takes its place', () => {
  const whole = fromStacks({ [`a;b;${'(other)'}`]: 5, 'a;b;c': 2, 'a;d': 1, 'e': 4 });
  const part = fromStacks({ 'a;b;c': 2, 'a;b;f': 3, 'a;b;g;h': 2 });
  const grown = graft({ ...whole, dropped: 9 }, part, ['a', 'b']);
  assert.deepEqual(stacksOf(grown), { 'a;b;c': 2, 'a;b;f': 3, 'a;b;g;h': 2, 'a;d': 1, 'e': 4 });
  for (let n = 1; n < grown.tree.size; n++) assert.ok(grown.tree.parent[n] < n);
  assert.equal(graft(whole, part, ['nowhere']), whole);
  // What is known of changes stays, and what the part knows of other functions is added.
  const certain = { interval: null, verdict: 'grew', cause: null, moreSeconds: 0 } as const;
  const noise = { ...certain, verdict: 'noise' } as const;
  const judged = graft({ ...whole, findings: whole.findings.map(() => new Map([[0, certain]])) },
    { ...part, findings: part.findings.map(() => new Map(part.names.map((_, f) => [f, noise]))) }, ['a', 'b']);
  assert.equal(judged.findings[0].get(0), certain);
  const added = judged.names.map((_, f) => f).filter((f) => f >= whole.names.length);
  assert.ok(added.length > 0 && added.every((f) => judged.findings[0].get(f) === noise));
  const all = graft(whole, fromStacks({ 'x;y': 1 }), []);
  assert.deepEqual(stacksOf(all), { 'x;y': 1 });
});

test('the call tree lists open nodes, the widest first, and opens the heavy path', () => {
  const profile = fromStacks({ 'a;b;c': 6, 'a;d': 3, 'e': 1 });
  const graph = new Model(profile).graph(0);
  const name = (n: number) => (n === 0 ? 'all' : profile.names[profile.tree.func[n]]);
  assert.deepEqual(visibleNodes(graph, 0, new Set([0])).map(name), ['all', 'a', 'e']);
  const heavy = heavyPath(graph, 0);
  assert.deepEqual(heavy.map(name), ['all', 'a', 'b']);
  assert.deepEqual(visibleNodes(graph, 0, new Set(heavy)).map(name),
    ['all', 'a', 'b', 'c', 'd', 'e']);
});
