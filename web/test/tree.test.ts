// SPDX-License-Identifier: Apache-2.0
// Totals, layout, function values, the sandwich and the search share, on trees small enough to check
// by hand and on random ones against slow but obvious computations.

import assert from 'node:assert/strict';
import test from 'node:test';
import { readProfile, type Profile } from '../flame/data/data';
import { functionValues, vanished } from '../flame/data/functions';
import { layoutGraph, rectangleAt, rectangleOfNode } from '../flame/data/layout';
import { Model } from '../flame/data/model';
import { poseAt, startMotion } from '../flame/view/motion';
import { makePattern, matchedTotal, matchNames } from '../flame/data/search';
import { byChange, isInside, makeTree, makeValues, outermost, pathTo, type Graph } from '../flame/data/tree';
import { DocumentBuilder, large, service, serviceDiff } from './synthetic';

// Each stack is root-first, separated by semicolons, with its value.
function fromStacks(stacks: Record<string, number>, base?: Record<string, number>): Profile {
  const builder = new DocumentBuilder([{ name: 'samples', unit: 'count' }]);
  const known = new Map<string, number>([['', 0]]);
  const before: number[] = [0];
  for (const stack of [...Object.keys(stacks), ...Object.keys(base ?? {})]) {
    let path = '';
    for (const name of stack.split(';')) {
      const parent = known.get(path)!;
      path += `;${name}`;
      if (known.has(path)) continue;
      known.set(path, builder.node(parent, builder.function(name)));
      before.push(0);
    }
  }
  for (const [stack, value] of Object.entries(stacks))
    builder.self[0][known.get(`;${stack}`)!] = value;
  for (const [stack, value] of Object.entries(base ?? {})) before[known.get(`;${stack}`)!] = value;
  const document = builder.document('test', [], 0);
  return readProfile(base ? { ...document, kind: 'diff', base: [before] } : document);
}

function graphOf(profile: Profile): Graph {
  return new Model(profile).graph(0);
}

// A tree as text: "name:total(children)", widest first.
function draw(profile: Profile, graph: Graph, node = 0): string {
  const { tree, values } = graph;
  const children: number[] = [];
  for (let n = 1; n < tree.size; n++) if (tree.parent[n] === node) children.push(n);
  children.sort((a, b) => values.total[b] - values.total[a] || a - b);
  const inner = children.map((child) => draw(profile, graph, child)).join(' ');
  const name = tree.func[node] < 0 ? 'all' : profile.names[tree.func[node]];
  return `${name}:${values.total[node]}${inner && `(${inner})`}`;
}

test('totals are sums of self values below', () => {
  const profile = fromStacks({ 'a': 1, 'a;b': 2, 'a;b;c': 3, 'a;d': 4, 'e': 5 });
  assert.equal(draw(profile, graphOf(profile)), 'all:15(a:10(b:5(c:3) d:4) e:5)');
});

test('negative values keep their numbers and take no width', () => {
  const profile = fromStacks({ 'a;b': 10, 'a;c': -4, 'd': -3 });
  const graph = graphOf(profile);
  assert.deepEqual([...graph.values.total], [3, 6, 10, -4, -3]);
  assert.deepEqual([...graph.values.weight], [10, 10, 10, 0, 0]);
  const layout = layoutGraph(graph, 0, 1000);
  assert.deepEqual([...layout.node], [0, 1, 2]);
  for (let i = 0; i < layout.node.length; i++) {
    assert.ok(layout.w[i] >= 0);
    assert.ok(layout.x[i] + layout.w[i] <= 1000);
  }
});

test('the layout is widest first, exact and nested', () => {
  const profile = fromStacks({ 'a;x': 1, 'a;y': 3, 'b': 6 });
  const graph = graphOf(profile);
  const layout = layoutGraph(graph, 0, 100);
  assert.equal(layout.rows, 3);
  const shown = [...layout.node].map((n, i) =>
    [n > 0 ? profile.names[profile.tree.func[n]] : 'all', layout.x[i], layout.w[i]]);
  assert.deepEqual(shown, [
    ['all', 0, 100], ['b', 0, 60], ['a', 60, 40], ['y', 60, 30], ['x', 90, 10]]);
  const y = rectangleAt(layout, 2, 75);
  assert.equal(profile.names[profile.tree.func[layout.node[y]]], 'y');
  assert.equal(rectangleAt(layout, 2, 30), -1);
  assert.equal(rectangleAt(layout, 9, 30), -1);
});

test('zooming keeps callers above at full width', () => {
  const profile = fromStacks({ 'a;b;c': 1, 'a;b;d': 1, 'a;e': 8 });
  const graph = graphOf(profile);
  const b = profile.names.indexOf('b');
  const zoom = graph.tree.func.indexOf(b);
  const layout = layoutGraph(graph, zoom, 100);
  assert.equal(layout.rows, 4);
  assert.deepEqual([...layout.w], [100, 100, 100, 50, 50]);
});

test('narrow frames are culled into one rest', () => {
  const stacks: Record<string, number> = { 'main;big': 100_000 };
  for (let i = 0; i < 500; i++) stacks[`main;tiny${i};below`] = 1;
  const profile = fromStacks(stacks);
  const graph = graphOf(profile);
  const layout = layoutGraph(graph, 0, 1000);
  assert.deepEqual([...layout.node], [0, 1, 2, ~1]);
  assert.deepEqual([...layout.rest], [[3, 500]]);
  assert.equal(rectangleOfNode(layout, graph, 5), -1);
  assert.ok(Math.abs(layout.w[3] - (500 / 100_500) * 1000) < 1e-9);
});

test('the layout of a large graph holds only what is visible', () => {
  const profile = readProfile(large(100_000, 5000));
  const graph = graphOf(profile);
  const layout = layoutGraph(graph, 0, 1280);
  assert.ok(layout.node.length < 40_000, `${layout.node.length} rectangles`);
  for (let row = 0; row < layout.rows; row++)
    for (let i = layout.rowStart[row]; i < layout.rowStart[row + 1]; i++) {
      assert.ok(layout.w[i] >= 0.5);
      if (i > layout.rowStart[row]) assert.ok(layout.x[i] >= layout.x[i - 1] + layout.w[i - 1] - 1e-6);
      assert.ok(layout.x[i] + layout.w[i] <= 1280 + 1e-6);
    }
});

test('a moving zoom begins and ends where the still ones are', () => {
  const profile = fromStacks({ 'a': 3, 'b;c': 1 });
  const graph = graphOf(profile);
  const from = layoutGraph(graph, 0, 400);
  const to = layoutGraph(graph, graph.tree.func.indexOf(profile.names.indexOf('b')), 400);
  const motion = startMotion(graph, from, to, 1000)!;
  assert.deepEqual([motion.x, motion.w, motion.inward], [300, 100, true]);
  const start = poseAt(motion, 1000);
  assert.deepEqual([start.left, start.width, start.wideStretch, start.done], [300, 100, 1, false]);
  const end = poseAt(motion, 5000);
  assert.deepEqual([end.left, end.width, end.deepStretch, end.done], [0, 400, 1, true]);
  assert.equal(startMotion(graph, to, to, 0), null);
});

test('recursion counts once in a function’s total', () => {
  const profile = fromStacks({ 'main;f;g;f': 5, 'main;f': 1, 'main;g;f;f': 2 });
  const values = new Model(profile).functionValues(0);
  const of = (name: string) => profile.names.indexOf(name);
  assert.equal(values.total[of('f')], 8);
  assert.equal(values.self[of('f')], 8);
  assert.equal(values.total[of('g')], 7);
  assert.equal(values.total[of('main')], 8);
});

test('outermost frames agree with a walk up from each node', () => {
  const { tree, names } = readProfile(service(1500));
  const flags = outermost(tree, names.length);
  for (let n = 1; n < tree.size; n++) {
    const above = pathTo(tree, tree.parent[n]);
    assert.equal(flags[n] === 1, !above.some((a) => tree.func[a] === tree.func[n]));
  }
});

test('the sandwich merges callers and callees of all occurrences', () => {
  const profile = fromStacks({
    'main;a;f;x': 1, 'main;b;f;x': 2, 'main;b;f;y': 4, 'main;b': 8, 'f': 16,
  });
  const sandwich = new Model(profile).sandwich(0, profile.names.indexOf('f'))!;
  assert.equal(draw(profile, sandwich.callees), 'f:23(y:4 x:3)');
  assert.equal(draw(profile, sandwich.callers), 'f:23(b:6(main:6) a:1(main:1))');
  assert.equal(sandwich.callees.values.self[0], 16);
  assert.equal(sandwich.callers.values.self[0], 16);
});

test('the sandwich of a recursive function counts each stack once', () => {
  const profile = fromStacks({ 'main;f;g;f;x': 5, 'main;f': 1, 'h;f;f': 2 });
  const sandwich = new Model(profile).sandwich(0, profile.names.indexOf('f'))!;
  assert.equal(draw(profile, sandwich.callees), 'f:8(g:5(f:5(x:5)) f:2)');
  assert.equal(draw(profile, sandwich.callers), 'f:8(main:6 h:2)');
});

test('a sandwich’s roots have the function’s total, in a diff too', () => {
  const model = new Model(readProfile(serviceDiff(1200)));
  const values = model.functionValues(1);
  const near = (a: number, b: number) => assert.ok(Math.abs(a - b) <= 1e-6 * Math.abs(b), `${a} ${b}`);
  for (let f = 0; f < model.profile.names.length; f++) {
    const { callers, callees, truncated } = model.sandwich(1, f)!;
    assert.equal(truncated, false);
    near(callers.values.total[0], values.total[f]);
    near(callees.values.total[0], values.total[f]);
    near(callers.values.baseTotal![0], values.baseTotal![f]);
    near(callees.values.baseTotal![0], values.baseTotal![f]);
  }
});

test('a sandwich of negative values keeps its widths inside', () => {
  const profile = fromStacks({ 'm;f;x': 5, 'm;f;y': -3, 'n;f': -1 });
  const { callers, callees } = new Model(profile).sandwich(0, profile.names.indexOf('f'))!;
  assert.equal(callees.values.total[0], 1);
  assert.equal(callees.values.weight[0], 5);
  assert.equal(callers.values.weight[0], 5);
});

test('the default function of a sandwich is the one with most self time', () => {
  const profile = fromStacks({ 'a;b': 3, 'a;c': 9 });
  assert.equal(new Model(profile).sandwich(0, -1)!.func, profile.names.indexOf('c'));
  assert.equal(new Model(fromStacks({})).sandwich(0, -1), null);
});

test('a match inside a match adds nothing to the share', () => {
  const profile = fromStacks({ 'main;json_a;json_b': 4, 'main;x;json_b': 2, 'main;y': 4 });
  const { tree } = profile;
  const { total } = graphOf(profile).values;
  const { flags, count } = matchNames(profile.names, makePattern('json', false));
  assert.equal(count, 2);
  assert.equal(matchedTotal(tree, total, flags, 0), 6);
  const x = tree.func.indexOf(profile.names.indexOf('x'));
  assert.equal(matchedTotal(tree, total, flags, x), 2);
  const a = tree.func.indexOf(profile.names.indexOf('json_a'));
  assert.equal(matchedTotal(tree, total, flags, tree.firstChild[a]), 4);
});

test('the matched share agrees with a walk up from each node', () => {
  const profile = readProfile(service(1500));
  const graph = graphOf(profile);
  const { flags } = matchNames(profile.names, makePattern('^(sqlite|orders::)', true));
  const matches = (n: number) => profile.tree.func[n] >= 0 && flags[profile.tree.func[n]] === 1;
  for (const root of [0, 3, 4, 40]) {
    let sum = 0;
    for (let n = root; n < profile.tree.size; n++) {
      if (!isInside(profile.tree, n, root) || !matches(n)) continue;
      const above = pathTo(profile.tree, profile.tree.parent[n]);
      if (n === root || !above.some((a) => a >= root && matches(a))) sum += graph.values.total[n];
    }
    assert.equal(matchedTotal(profile.tree, graph.values.total, flags, root), sum);
  }
});

test('search text: substrings, regular expressions, capitals', () => {
  const names = ['Parse', 'parser', 'a.b', 'axb'];
  const find = (text: string, regex: boolean) =>
    names.filter((_, i) => matchNames(names, makePattern(text, regex)).flags[i]);
  assert.deepEqual(find('parse', false), ['Parse', 'parser']);
  assert.deepEqual(find('Parse', false), ['Parse']);
  assert.deepEqual(find('a.b', false), ['a.b']);
  assert.deepEqual(find('a.b', true), ['a.b', 'axb']);
  assert.deepEqual(find('^PARSE'.toLowerCase(), true), ['Parse', 'parser']);
  assert.deepEqual(find('\\Sarser', true), ['parser']);
  const search = new Model(fromStacks({ a: 1 })).search('(', true);
  assert.equal(search.matches, null);
  assert.match(search.error, /^Invalid regular expression.*\.$/);
});

test('a diff knows what vanished', () => {
  const profile = fromStacks({ 'm;a': 5 }, { 'm;a': 4, 'm;gone': 3 });
  const values = makeValues(profile.tree, profile.self[0], profile.base[0]);
  const byFunction = functionValues(profile.tree, values, profile.names.length,
    outermost(profile.tree, profile.names.length));
  assert.equal(vanished(byFunction), 1);
  const graph = { tree: profile.tree, values, whole: 5, wholeBase: 7 };
  assert.deepEqual([...layoutGraph(graph, 0, 100).node], [0, 1, 2]);
});

test('widths can stand for the size of a change', () => {
  const tree = makeTree(Int32Array.of(-1, 0, 0), Int32Array.of(-1, 0, 1), new Uint8Array(3));
  const values = makeValues(tree, Float64Array.of(0, 10, 30), Float64Array.of(0, 40, 25));
  const { values: changed } = byChange({ tree, values, whole: 40, wholeBase: 65 });
  assert.deepEqual([...changed.weight], [35, 30, 5]);
  assert.deepEqual([...changed.total], [40, 10, 30]);
});
