// SPDX-License-Identifier: Apache-2.0
// Which instructions of a function are shown, and where they say that they are from.

import assert from 'node:assert/strict';
import test from 'node:test';
import { codeOf, placeOf, type Instruction } from '../ui/data/assembly';

const row = (address: number, flat = 0, more: Partial<Instruction> = {}): Instruction => ({
  flat, cum: flat, address: `0x${address.toString(16)}`, instruction: 'nop', function: 'f',
  inlined: '', file: '/src/a.c', line: 3, source: 'x++;', binary: '/bin/app', ...more,
});

test('instructions with samples are shown with those around them', () => {
  const rows = Array.from({ length: 40 }, (_, i) => row(i, i === 10 || i === 13 || i === 30 ? 5 : 0));
  const [code, ...others] = codeOf(rows, 2);
  assert.equal(others.length, 0);
  assert.deepEqual(code.pieces.map((piece) => piece.map(({ address }) => Number(address))),
    [[8, 9, 10, 11, 12, 13, 14, 15], [28, 29, 30, 31, 32]]);
  assert.deepEqual(code.skipped, [8, 12, 7]);
});

test('code of one name in two binaries is apart', () => {
  const rows = [row(1, 5), row(2), row(9, 1, { binary: '/bin/other' }), row(10, 0, { binary: '/bin/other' })];
  const all = codeOf(rows);
  assert.deepEqual(all.map(({ binary }) => binary), ['/bin/app', '/bin/other']);
  assert.deepEqual(all.map(({ pieces }) => pieces[0].length), [2, 2]);
  assert.deepEqual(all.map(({ skipped }) => skipped), [[0, 0], [0, 0]]);
});

test('a place is said once, and what is inlined is named', () => {
  assert.equal(placeOf(row(1), undefined), 'a.c:3  x++;');
  assert.equal(placeOf(row(2), row(1)), '');
  assert.equal(placeOf(row(2, 0, { inlined: 'g', source: '' }), row(1)), 'a.c:3  (inlined: g)');
  assert.equal(placeOf(row(2, 0, { file: '', line: 0 }), row(1)), '');
});
