// SPDX-License-Identifier: Apache-2.0
// The reader of flame data: what it accepts, what it refuses and in which words.

import assert from 'node:assert/strict';
import test from 'node:test';
import { FlameDataError, parseProfile, readProfile } from '../flame/data/data';
import { diffColour, makeLook, PackageColours, pixelOf } from '../flame/colour';
import { makeColumns } from '../flame/data/columns';
import { Model } from '../flame/data/model';
import { depthOf } from '../flame/data/tree';
import { service, serviceDiff, type Document } from './synthetic';

function small(): Document {
  return {
    version: 1,
    kind: 'flame',
    title: 'cpu.pb.gz',
    notes: ['3 samples'],
    types: [{ name: 'samples', unit: 'count' }, { name: 'cpu', unit: 'nanoseconds' }],
    default_type: 1,
    strings: ['', 'main', 'main.c', 'app', 'work'],
    functions: { name: [1, 4], file: [2, 0], binary: [3, 3] },
    nodes: { up: [1, 1, 2], function: [0, 1, 1], inlined: [3] },
    self: [[0, 1, 2, 3], [0, 10, 20, 30]],
    dropped: 0,
  };
}

test('a document becomes typed arrays', () => {
  const profile = readProfile(small());
  assert.deepEqual([...profile.tree.parent], [-1, 0, 1, 1]);
  assert.deepEqual([...profile.tree.func], [-1, 0, 1, 1]);
  assert.deepEqual([0, 1, 2, 3].map((n) => depthOf(profile.tree, n)), [0, 1, 2, 2]);
  assert.deepEqual([...profile.tree.inlined], [0, 0, 0, 1]);
  assert.deepEqual(profile.names, ['main', 'work']);
  assert.deepEqual(profile.files, ['main.c', '']);
  assert.deepEqual([...profile.self[1]], [0, 10, 20, 30]);
  assert.deepEqual(profile.base, []);
});

test('an empty profile is a profile', () => {
  const profile = readProfile({
    ...small(), functions: { name: [], file: [], binary: [] },
    nodes: { up: [], function: [], inlined: [] }, self: [[0], [0]],
  });
  assert.equal(profile.tree.size, 1);
});

test('base values are scaled once, on reading', () => {
  const profile = readProfile({
    ...small(), kind: 'diff', base: [[0, 2, 2, 2], [0, 4, 4, 4]], scale: [1.5, 1],
    normalize: 'total',
  });
  assert.deepEqual([...profile.base[0]], [0, 3, 3, 3]);
  assert.deepEqual([...profile.base[1]], [0, 4, 4, 4]);
  assert.equal(profile.normalize, 'total');
});

test('the generators make valid documents', () => {
  assert.ok(readProfile(service(500)).tree.size >= 500);
  assert.equal(readProfile(serviceDiff(500)).kind, 'diff');
});

type Break = (document: any) => unknown;

const HOSTILE: [string, Break, RegExp][] = [
  ['another version', (d) => (d.version = 2), /version is 2; this page supports version 1 only/],
  ['no version', (d) => delete d.version, /version is missing/],
  ['another kind', (d) => (d.kind = 'x'), /kind is "x"/],
  ['no types', (d) => (d.types = []), /0 sample types/],
  ['a type that is no object', (d) => (d.types[0] = null), /types\[0\] is null/],
  ['a unit that is a number', (d) => (d.types[0].unit = 3), /types\[0\]\.unit is 3/],
  ['a default type out of range', (d) => (d.default_type = 2), /default_type is 2/],
  ['a string that is an object', (d) => (d.strings[1] = {}), /strings\[1\] is \{\}/],
  ['a name out of range', (d) => (d.functions.name[0] = 5), /functions\.name\[0\] is 5/],
  ['a negative name', (d) => (d.functions.name[0] = -1), /functions\.name\[0\] is -1/],
  ['uneven columns', (d) => d.functions.file.pop(), /functions\.file has 1 entries, but must have 2/],
  ['up of zero', (d) => (d.nodes.up[1] = 0), /nodes\.up\[1\] is 0, .* from 1 to 2/],
  ['up beyond the root', (d) => (d.nodes.up[1] = 3), /nodes\.up\[1\] is 3/],
  ['up that is a fraction', (d) => (d.nodes.up[1] = 1.5), /nodes\.up\[1\] is 1\.5/],
  ['up that is text', (d) => (d.nodes.up[1] = '1'), /nodes\.up\[1\] is "1"/],
  ['a function out of range', (d) => (d.nodes.function[2] = 2), /nodes\.function\[2\] is 2/],
  ['an inlined root', (d) => (d.nodes.inlined = [0]), /nodes\.inlined\[0\] is 0/],
  ['inlined ids out of order', (d) => (d.nodes.inlined = [2, 2]), /nodes\.inlined\[1\] is 2/],
  ['an inlined id out of range', (d) => (d.nodes.inlined = [4]), /nodes\.inlined\[0\] is 4/],
  ['a missing column of values', (d) => d.self.pop(), /self has 1 entries, but must have 2/],
  ['a short column of values', (d) => d.self[1].pop(), /self\[1\] has 3 entries, but must have 4/],
  ['a value that is null', (d) => (d.self[0][2] = null), /self\[0\]\[2\] is null/],
  ['a diff without base', (d) => (d.kind = 'diff'), /base is missing/],
  ['a negative scale',
    (d) => Object.assign(d, { kind: 'diff', base: d.self, scale: [-1, 1] }), /scale\[0\] is -1/],
  ['notes that are no list', (d) => (d.notes = 'x'), /notes is "x"/],
  ['a dropped count below zero', (d) => (d.dropped = -1), /dropped is -1/],
  ['nodes missing', (d) => delete d.nodes, /nodes is missing/],
];

for (const [name, damage, words] of HOSTILE) {
  test(`refuses ${name}`, () => {
    const document = structuredClone(small());
    damage(document);
    assert.throws(() => parseProfile(JSON.stringify(document)), (error: Error) => {
      assert.ok(error instanceof FlameDataError, String(error));
      assert.match(error.message, words);
      assert.match(error.message, /^The flame data cannot be drawn: .*\.$/);
      return true;
    });
  });
}

test('refuses what is not JSON, or no object', () => {
  assert.throws(() => parseProfile('{'), /not valid JSON/);
  assert.throws(() => parseProfile('[]'), /the document is \[\]/);
  assert.throws(() => parseProfile('null'), /the document is null/);
});

test('what is known of a change is read, and wrong entries are refused', () => {
  const diff = serviceDiff(60);
  const read = (changes: unknown) => readProfile({ ...diff, changes });
  assert.ok(read(undefined).findings.every((map) => map.size === 0));
  const { findings } = read([
    { function: 2, interval: [-5, 7], verdict: 'noise' }, { function: 3, type: 0, verdict: 'grew' },
    { function: 4, verdict: 'undecided', more_seconds: 60 }, { function: 5, verdict: 'grew', cause: 'requests' },
    { function: 6, verdict: 'grew', self: { interval: [1, 2], verdict: 'undecided' } },
  ]);
  assert.deepEqual(findings[1].get(2), { interval: [-5, 7], verdict: 'noise', cause: null, moreSeconds: 0 });
  assert.equal(findings[0].get(3)!.verdict, 'grew');
  assert.equal(findings[1].get(4)!.moreSeconds, 60);
  assert.equal(findings[1].get(5)!.cause, 'requests');
  assert.deepEqual(findings[1].get(6)!.self,
    { interval: [1, 2], verdict: 'undecided', cause: null, moreSeconds: 0 });
  for (const wrong of [{}, 'x', [{}], [{ function: -1 }], [{ function: 1e9 }], [{ function: 0, type: 9 }],
    [{ function: 0, interval: [1] }], [{ function: 0, interval: [2, 1] }],
    [{ function: 0, interval: ['1', 2] }], [{ function: 0, verdict: 'maybe' }],
    [{ function: 0, self: 1 }],
    [{ function: 0, self: { verdict: 'maybe' } }], [{ function: 0, cause: 'unknown' }], [{ function: 0, more_seconds: -1 }], [{ function: 0, more_seconds: 'long' }], [null]])
    assert.throws(() => read(wrong), FlameDataError, JSON.stringify(wrong));
});

test('a change that is noise is grey, and its interval has a column', () => {
  const diff = serviceDiff(60);
  const func = diff.nodes.function[4];
  const profile = readProfile({ ...diff,
    changes: [{ function: func, interval: [-2e6, 9e6], verdict: 'noise', self: { verdict: 'undecided' } }] });
  const graph = new Model(profile).graph(1);
  const look = makeLook(profile, 1, graph, new PackageColours(profile, { dark: false, safe: false }));
  const grey = pixelOf(diffColour(0, { dark: false, safe: false }));
  assert.equal(look.fill(5), grey);
  assert.equal(look.fill(0), grey); // the root was not judged
  const values = new Model(profile).functionValues(1);
  const columns = makeColumns(values, 'nanoseconds', graph.whole,
    (f) => profile.findings[1].get(f), true);
  const column = (wanted: string) => columns.find(({ key }) => key === wanted)!;
  assert.match(column('interval').text(func), /^\u22122.ms … \+9.ms$/);
  assert.equal(column('interval').text(diff.nodes.function[3]), '');
  assert.equal(column('verdict').text(func), 'noise');
  assert.equal(column('self-change').finding!(func)?.verdict, 'undecided');
  assert.equal(column('total-change').finding!(func)?.verdict, 'noise');
  assert.match(column('total-change').aside!(func), /%|new|gone/);
  // Without measured changes there is nothing to show.
  assert.equal(makeColumns(values, 'nanoseconds', graph.whole, () => undefined, false).length, 6);
});
