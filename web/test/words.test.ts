// SPDX-License-Identifier: Apache-2.0
// Units, names, labels, colours and the URL's form of a view.

import assert from 'node:assert/strict';
import test from 'node:test';
import { diffColour, diffStep, DIFF_STEPS, hash, oklch, PackageColours, relativeChange,
  type Scheme }
  from '../flame/colour';
import { makeTree } from '../flame/data/tree';
import { sortRows, makeColumns, rowsOf } from '../flame/data/columns';
import { readProfile } from '../flame/data/data';
import { Labels } from '../flame/data/labels';
import { briefName, isUnnamed, packageEnd, placeOf, shorterNames } from '../flame/data/names';
import { formatChange, formatGrowth, formatPercent, formatValue, priceUnit } from '../flame/data/units';
import { service } from './synthetic';

const plain = (text: string) => text.replace(/\u00a0/g, ' ').replace(/\u2212/g, '-');

test('money', () => {
  const unit = priceUnit(0.05, 'EUR');
  const cases: [number, string][] = [
    [0, '0 EUR'], [3600e9, '0.05 EUR'], [720_000e9, '10.00 EUR'], [360e9, '5 mEUR'], [360e6, '5 µEUR'],
    [3600e9 * 100_000, '5,000 EUR'], [-3600e9, '-0.05 EUR'],
  ];
  for (const [value, text] of cases) assert.equal(plain(formatValue(value, unit)), text);
  assert.equal(plain(formatValue(3600e9, priceUnit(2, ''))), '2.00');
});

test('nanoseconds', () => {
  const cases: [number, string][] = [
    [0, '0 ns'], [999, '999 ns'], [1500, '1.50 µs'], [30_000_000, '30 ms'], [30_400_000, '30.4 ms'],
    [1_234_567_890, '1.23 s'], [95.3e9, '95.3 s'], [600e9, '10 min'], [10_800e9, '3 h'],
    [604_800e9, '7 d'], [-1500, '-1.50 µs'],
  ];
  for (const [value, text] of cases) assert.equal(plain(formatValue(value, 'nanoseconds')), text);
});

test('bytes, counts and other units', () => {
  assert.equal(plain(formatValue(512, 'bytes')), '512 B');
  assert.equal(plain(formatValue(1536, 'bytes')), '1.50 KiB');
  assert.equal(plain(formatValue(3 * 2 ** 30, 'bytes')), '3 GiB');
  assert.equal(plain(formatValue(12_034, 'count')), '12,034');
  assert.equal(plain(formatValue(12_034_567, 'count')), '12.0 M');
  assert.equal(plain(formatValue(-7, 'count')), '-7');
  assert.equal(plain(formatValue(42, 'parsecs')), '42 parsecs');
});

test('percentages and changes', () => {
  assert.equal(formatPercent(1), '100%');
  assert.equal(formatPercent(0.12345), '12.3%');
  assert.equal(formatPercent(0.012345), '1.23%');
  assert.equal(formatPercent(0.00001), '<0.01%');
  assert.equal(formatPercent(0), '0%');
  assert.equal(formatPercent(0 / 0), '–');
  assert.equal(plain(formatPercent(-0.5)), '-50.0%');
  assert.equal(plain(formatChange(1500, 'bytes')), '+1.46 KiB');
  assert.equal(plain(formatChange(-3, 'count')), '-3');
  assert.equal(plain(formatChange(1e-9, 'count')), '0');
  assert.equal(formatGrowth(0, 5), 'new');
  assert.equal(formatGrowth(5, 0), 'gone');
  assert.equal(formatGrowth(5, 5), '0%');
  assert.equal(formatGrowth(0, 0), '0%');
  assert.equal(formatGrowth(4, 5), '+25.0%');
  assert.equal(plain(formatGrowth(5, 4)), '-20.0%');
  assert.equal(formatGrowth(1, 40), '×40');
});

test('names get shorter down to their leaf', () => {
  const leaf = (name: string) => shorterNames(name).at(-1);
  assert.equal(leaf('orders::json::Parser::parse(std::string_view)'), 'parse');
  assert.equal(leaf('orders::Rule::applies(Line const&) const'), 'applies');
  assert.equal(leaf('std::vector<a::B, c::D<e::F>>::push_back(a::B const&)'), 'push_back');
  assert.equal(leaf('net/http.(*conn).serve'), 'serve');
  assert.equal(leaf('google.golang.org/grpc.(*Server).serveStreams.func1.2'), 'serveStreams.func1.2');
  assert.equal(leaf('main.main.func2'), 'main.func2');
  assert.equal(leaf('com.acme.orders.RuleEngine.evaluate'), 'evaluate');
  assert.equal(leaf('<script>alert(1)</script>'), '<script>alert(1)</script>');
  assert.equal(leaf('a::f(g(1))(int)'), 'f');
  assert.equal(leaf('operator_of::less(int'), 'less(int');
  assert.equal(leaf('a::open(int'), 'open');
  assert.equal(leaf('a::b>c'), 'b>c');
  assert.equal(leaf('malloc'), 'malloc');
  assert.equal(leaf('[unknown]'), '[unknown]');
  assert.equal(leaf(''), '');
  assert.equal(briefName('net/http.(*conn).serve', 22), 'net/http.(*conn).serve');
  assert.equal(briefName('net/http.(*conn).serve', 20), 'http.(*conn).serve');
  assert.equal(briefName('net/http.(*conn).serve', 3), 'serve');
  assert.deepEqual(shorterNames('example.org/a/b.(*T).Run'),
    ['example.org/a/b.(*T).Run', 'a/b.(*T).Run', 'b.(*T).Run', '(*T).Run', 'Run']);
  assert.deepEqual(shorterNames('a::b::c'), ['a::b::c', 'b::c', 'c']);
  assert.deepEqual(shorterNames('libx.so.0.7+0x5800'), ['libx.so.0.7+0x5800']);
});

test('packages', () => {
  const packageOf = (name: string, file: string, binary: string) =>
    name.slice(0, packageEnd(name)) || placeOf(file, binary);
  assert.equal(packageOf('orders::json::parse', '', 'orderd'), 'orders');
  assert.equal(packageOf('net/http.(*conn).serve', '', 'x'), 'net/http');
  assert.equal(packageOf('github.com/acme/mesh/proxy.Run', '', 'x'), 'github.com/acme/mesh/proxy');
  assert.equal(packageOf('com.acme.orders.Rule.run', '', 'x'), 'com.acme');
  assert.equal(packageOf('main.main', '', 'x'), 'main');
  assert.equal(packageOf('malloc', 'malloc.c', '/usr/lib/libc.so.6'), 'libc.so.6');
  assert.equal(packageOf('f', 'src/net/io.c', ''), 'src/net');
  assert.equal(packageOf('f', '', ''), '');
  assert.equal(packageOf('std::map<a::b>::find(c::d)', '', 'x'), 'std');
  assert.equal(packageOf('void a::b<int>::c()', 'v.cc', 'x'), 'x');
  assert.equal(packageOf('<alloc::vec::Vec<T> as core::Drop>::drop', '', 'x'), '<alloc');
  assert.ok(isUnnamed('[unknown]') && isUnnamed('') && isUnnamed('0x7f12'));
  assert.ok(!isUnnamed('main'));
});

test('labels shorten, then cut, then vanish', () => {
  const labels = new Labels((text) => 10 * text.length);
  assert.equal(labels.fit('ab::cdef', 80), 'ab::cdef');
  assert.equal(labels.fit('ab::cdef', 79), 'cdef');
  assert.equal(labels.fit('ab::cdef', 30), 'cd…');
  assert.equal(labels.fit('ab::cdef', 20), '');
});

const profile = readProfile(service(50));
const packageColour = (binary: string, name: string, scheme: Scheme) =>
  new PackageColours(profile, scheme).pick(name, '', binary);

test('colours are deterministic and differ by theme', () => {
  const light = { dark: false, safe: false };
  const dark = { dark: true, safe: false };
  assert.equal(hash('libc.so.6'), hash('libc.so.6'));
  assert.equal(packageColour('libc', 'malloc', light), packageColour('libc', 'malloc', light));
  assert.notEqual(packageColour('libc', 'malloc', light), packageColour('libc', 'malloc', dark));
  assert.notEqual(packageColour('libc', 'malloc', light),
    packageColour('libc', 'malloc', { dark: false, safe: true }));
  assert.match(packageColour('libc', 'malloc', light), /^#[0-9a-f]{6}$/);
  assert.equal(oklch(1, 0, 0), '#ffffff');
  assert.equal(oklch(0, 0, 0), '#000000');
});

test('packages beside each other have different hues', () => {
  // Two packages of one hue by their hashes.
  const wanted = hash('p0') % 20;
  const same = Array.from({ length: 200 }, (_, i) => `p${i + 1}`).filter((name) => hash(name) % 20 === wanted).slice(0, 3);
  assert.equal(same.length, 3);
  const names = ['p0', ...same].map((name) => `${name}::f`);
  const blank = names.map(() => '');
  const tree = makeTree(Int32Array.of(-1, 0, 1, 1, 1), Int32Array.of(-1, 0, 1, 2, 3), new Uint8Array(5));
  const weight = Float64Array.of(3000, 3000, 1500, 1499, 1);
  const values = { self: weight, total: weight, weight, baseSelf: null, baseTotal: null };
  const colours = new PackageColours({ ...profile, names, files: blank, binaries: blank },
    { dark: false, safe: false });
  colours.settle({ tree, values, whole: 3000, wholeBase: 0 });
  const hues = names.map((_, f) => colours.of(f));
  assert.notEqual(hues[1], hues[0], 'a callee and its caller');
  assert.notEqual(hues[2], hues[0]);
  assert.notEqual(hues[2], hues[1], 'frames beside each other');
  assert.equal(colours.pick(names[0], '', ''), new PackageColours(profile, { dark: false, safe: false }).pick(names[0], '', ''),
    'who comes first keeps the hue of its name');
});

test('text keeps its contrast on every frame', () => {
  const luminance = (colour: string) => {
    const [r, g, b] = [1, 3, 5].map((i) => {
      const c = parseInt(colour.slice(i, i + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a: string, b: string) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  for (const dark of [false, true])
    for (const safe of [false, true]) {
      const ink = dark ? '#f1f3f5' : '#1b1f24';
      for (let i = 0; i < 300; i++)
        assert.ok(contrast(packageColour(`p${i}`, `f${i}`, { dark, safe }), ink) >= 4.5);
      for (let step = -DIFF_STEPS; step <= DIFF_STEPS; step++)
        assert.ok(contrast(diffColour(step, { dark, safe }), ink) >= 4.5, `${step} ${dark} ${safe}`);
    }
});

test('diff colours follow the relative change of self and total', () => {
  const column = (...values: number[]) => Float64Array.from(values);
  const values = {
    self: column(10, 0, 5, 5), total: column(10, 0, 5, 5), weight: column(10, 0, 5, 5),
    baseSelf: column(0, 10, 5, 5.01), baseTotal: column(0, 10, 5, 5.01),
  };
  assert.equal(relativeChange(values, 0), 1);
  assert.equal(relativeChange(values, 1), -1);
  assert.equal(relativeChange(values, 2), 0);
  assert.equal(diffStep(1), DIFF_STEPS);
  assert.equal(diffStep(-1), -DIFF_STEPS);
  assert.equal(diffStep(relativeChange(values, 3)), 0);
  const channel = (colour: string, i: number) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const red = diffColour(DIFF_STEPS, { dark: false, safe: false });
  const blue = diffColour(-DIFF_STEPS, { dark: false, safe: false });
  assert.ok(channel(red, 0) > channel(red, 2) + 40);
  assert.ok(channel(blue, 2) > channel(blue, 0) + 40);
});

test('table rows: filter and sort', () => {
  const values = {
    self: Float64Array.from([1, 9, 0, 4]), total: Float64Array.from([5, 9, 0, 4]),
    baseSelf: null, baseTotal: null,
  };
  const names = ['b', 'a', 'zero', 'c'];
  const rows = rowsOf(values, null);
  assert.deepEqual([...rows], [0, 1, 3]);
  const columns = makeColumns(values, 'count', 10);
  const others = Int32Array.from([0, 1]);
  sortRows(others, null, ['(other)', 'b'], false);
  assert.deepEqual([...others], [1, 0], 'what is left over comes last');
  sortRows(rows, columns[0], names, true);
  assert.deepEqual([...rows], [1, 3, 0]);
  sortRows(rows, null, names, false);
  assert.deepEqual([...rows], [1, 0, 3]);
  assert.deepEqual([...rowsOf(values, Uint8Array.from([0, 0, 1, 1]))], [3]);
});

test('a vanished function is in a diff’s table', () => {
  const values = {
    self: Float64Array.from([0, 5]), total: Float64Array.from([0, 5]),
    baseSelf: Float64Array.from([9, 4]), baseTotal: Float64Array.from([9, 4]),
  };
  const rows = rowsOf(values, null);
  const columns = makeColumns(values, 'count', 5);
  const change = columns.find((column) => column.isChange)!;
  sortRows(rows, change, ['gone', 'kept'], true);
  assert.deepEqual([...rows], [1, 0], 'what grew comes first');
  assert.equal(change.aside!(0), 'gone');
});

