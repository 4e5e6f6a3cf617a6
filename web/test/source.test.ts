// SPDX-License-Identifier: Apache-2.0
// Links to source lines, and the lines of a text that are shown.

import assert from 'node:assert/strict';
import test from 'node:test';
import { excerpts, lineLink, normalPath, type SourceLink } from '../ui/data/source';

const link = (url: string, ...strip: string[]): SourceLink =>
  ({ service: 'shop', url, commit: null, strip });

test('paths are worked out as the server does it', () => {
  assert.equal(normalPath('/a//b/./c/../d.c'), '/a/b/d.c');
  assert.equal(normalPath('/../../etc/passwd'), '/etc/passwd');
  assert.equal(normalPath('./a/b.c'), 'a/b.c');
  for (const wrong of ['', '/', '.', '../a.c', 'a/../../b.c', '/a\nb.c', '/a\0b.c'])
    assert.equal(normalPath(wrong), null, JSON.stringify(wrong));
});

test('a line has the link of the first template that fits', () => {
  const links = [
    link('https://git.example/shop/blob/abc/{path}#L{line}', '/build/shop/'),
    link('https://go.example/src/{path}?line={line}', '/usr/lib/go', '/opt/go'),
    link('https://git.example/modules/{path}#L{line}'),
  ];
  assert.equal(lineLink(links, '/build/shop/src/a.c', 7),
    'https://git.example/shop/blob/abc/src/a.c#L7');
  assert.equal(lineLink(links, '/opt/go/fmt/print.go', 1), 'https://go.example/src/fmt/print.go?line=1');
  assert.equal(lineLink(links, 'github.com/x/y.go', 3), 'https://git.example/modules/github.com/x/y.go#L3');
  assert.equal(lineLink(links, '/build/shopping/a.c', 7), null, 'a folder, not a prefix of its name');
  assert.equal(lineLink(links, '/build/shop', 7), null);
  assert.equal(lineLink(links, '/build/shop/src/a.c', 0), null, 'no line is known');
  assert.equal(lineLink([], '/build/shop/src/a.c', 7), null);
});

test('what a profile says can neither leave the template nor become another address', () => {
  const links = [link('https://git.example/{path}#L{line}', '/b')];
  assert.equal(lineLink(links, '/b/../../../evil', 1), null);
  assert.equal(lineLink(links, '/b/x/../../b/{line}?a=b#c" onclick="x', 1),
    'https://git.example/%7Bline%7D%3Fa%3Db%23c%22%20onclick%3D%22x#L1');
  assert.equal(lineLink(links, "/b/$&$'$`", 1), "https://git.example/%24%26%24'%24%60#L1");
  for (const url of ['javascript:alert(1)//{path}', 'data:text/html,{path}', '//evil/{path}',
    'https://{path}/x', 'https:/{path}'])
    assert.equal(lineLink([link(url, '/b')], '/b/a.c', 1), null, url);
});

test('hot lines are shown with some around them, in pieces', () => {
  const text = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`).join('\r\n') + '\n';
  const rows = [{ line: 20, flat: 2 }, { line: 2, flat: 1 }, { line: 5, flat: 3 }, { line: 0, flat: 9 }];
  const found = excerpts(text, rows, 2) ?? assert.fail();
  assert.deepEqual(found.map(({ first, lines }) => [first, lines.length]), [[1, 7], [18, 5]]);
  assert.equal(found[0]?.lines[4]?.text, 'line 5');
  assert.equal(found[0]?.lines[4]?.row?.flat, 3);
  assert.equal(found[1]?.lines[2]?.row?.flat, 2);
  assert.equal(found.flatMap(({ lines }) => lines).filter(({ row }) => row).length, 3);
  assert.deepEqual(excerpts(text, [{ line: 30 }], 2)?.[0]?.lines.length, 3, 'up to the end');
  assert.equal(excerpts(text, [{ line: 31 }], 2), null, 'another version of the file');
  assert.equal(excerpts('', [{ line: 1 }]), null);
  assert.deepEqual(excerpts(text, []), []);
});
