// SPDX-License-Identifier: Apache-2.0
// Names come from profiles: markup, marks that turn text around, and names of ten thousand letters
// go through everything that reads, shortens, colours and writes names.

import assert from 'node:assert/strict';
import test from 'node:test';
import { PackageColours } from '../flame/colour';
import { functionName, functionOf, originOf, readProfile } from '../flame/data/data';
import { Labels } from '../flame/data/labels';
import { packageEnd, shorterNames, shownName } from '../flame/data/names';
import { decodeState, defaultState, encodeState } from '../flame/state';
import { derive } from '../flame/data/transform';
import { curlCommand, queryCommand, shellQuote } from '../ui/commands';
import { fileName, place } from '../ui/data/names';
import { parseQuery, withLabel, writeQuery } from '../ui/selection';
import { DocumentBuilder } from './synthetic';

const NAMES = [
  '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', '</script><!--', '&lt;b&gt;',
  'safe\u202egpj.exe', '\u2066\u2067\u2068x\u2069', 'a\u0000b\u001b[31mc\u0007', '\u200bzero\ufeff',
  'x'.repeat(10_000), '<'.repeat(10_000), 'a::'.repeat(3000), '('.repeat(5000), '\ud800', 'שלום',
  '__proto__', 'constructor', 'toString', '', ' ', '\n', '%00%s%n', "'; DROP TABLE x; --", '$(reboot)`id`',
];

const builder = new DocumentBuilder([{ name: 'samples', unit: 'count' }]);
let parent = 0;
for (const name of NAMES)
  parent = builder.node(parent, builder.function(name, `${name}.c`, `${name}.so`), [1]);
const profile = readProfile(builder.document(NAMES[0], [NAMES[1]], 0));

test('what is shown has nothing that cannot be seen, and looks like itself', () => {
  const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
  profile.names.forEach((_, func) => {
    assert.doesNotMatch(functionName(profile, func), unseen);
    assert.doesNotMatch(originOf(functionOf(profile, func)), unseen);
  });
  assert.equal(shownName('safe\u202egpj.exe'), 'safe\\u202egpj.exe');
  assert.equal(shownName('שלום'), 'שלום');
  assert.equal(shownName('<script>'), '<script>');
});

test('names are shortened, coloured and fitted without trouble', () => {
  const labels = new Labels((text) => text.length * 6);
  const colours = new PackageColours(profile, { dark: false, safe: false }, 'binary');
  profile.names.forEach((name, func) => {
    assert.ok(shorterNames(name).length > 0);
    assert.ok(packageEnd(name) <= name.length);
    assert.ok(labels.fit(name, 200).length * 6 <= 206);
    assert.equal(colours.of(func) >>> 24, 0xff);
  });
});

test('a view of such frames survives its URL, which stays short', () => {
  for (let zoom = 1; zoom < profile.tree.size; zoom++) {
    const state = { ...defaultState(profile), zoom, hidden: [] };
    const text = encodeState(state, profile);
    assert.ok(text.length < 40, text);
    assert.equal(decodeState(text, profile).zoom, zoom);
  }
  const hidden = [0, 8, 9];
  const state = { ...defaultState(profile), hidden };
  assert.deepEqual(decodeState(encodeState(state, profile), profile).hidden, hidden);
});

test('each can be hidden or collapsed', () => {
  profile.names.forEach((_, func) => {
    const { profile: out } = derive(profile,
      { hidden: [func], recursion: true, fold: ['*'], only: '', during: '', span: '' });
    assert.equal(out.self[0].reduce((a, v) => a + v, 0), NAMES.length);
  });
});

test('values of labels go through a query unchanged', () => {
  for (const name of NAMES.filter((one) => one !== '')) {
    const selection = withLabel({ type: 'cpu', matchers: [] }, 'host', name);
    assert.deepEqual(parseQuery(writeQuery(selection)), selection);
  }
});

test('commands hold one word, whatever is in it', () => {
  assert.equal(shellQuote('a-b_c.d'), 'a-b_c.d');
  assert.equal(shellQuote(`it's`), `'it'\\''s'`);
  const shown = { origin: 'http://h:1', query: `cpu{host="$(reboot)'"}`, bounds: { from: 0, to: 60 } };
  assert.equal(queryCommand(shown, 'top'),
    `assay query top 'cpu{host="$(reboot)'\\''"}' --from 1970-01-01T00:00:00Z `
    + '--to 1970-01-01T00:01:00Z -u http://h:1');
  assert.match(curlCommand(shown, '/api/v1/profile', '-o x'),
    /--data-urlencode 'query=cpu\{host="\$\(reboot\)'\\''"\}'/);
});

test('a file’s name is only letters, digits and marks that no shell minds', () => {
  for (const name of NAMES) assert.match(fileName(name), /^[\w.-]{1,60}$/);
  assert.equal(fileName('../../etc/passwd'), 'etc-passwd');
  assert.equal(place('a.c', 7), 'a.c:7');
  assert.equal(place('', 0), 'unknown');
});
