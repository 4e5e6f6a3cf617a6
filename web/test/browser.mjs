// SPDX-License-Identifier: Apache-2.0
// Drives the built page in a real headless Chromium:
//   node test/browser.mjs [--outdir DIR] [page.html ...]
// Without pages it makes its own from dist/flame.html. Screenshots of every page go to DIR.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileUrl, loadGenerator, PATIENCE_MS, readTemplate, startBrowser, until, writePage } from './support.mjs';

const { values, positionals } = parseArgs({
  options: { outdir: { type: 'string' } }, allowPositionals: true,
});
const scratch = mkdtempSync(join(tmpdir(), 'assay-web-browser-'));
const outdir = values.outdir ?? scratch;
let failures = 0;

async function check(name, body) {
  try {
    await body();
    console.log(`ok - ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok - ${name}`);
    console.log(String(error.stack ?? error).replace(/^/gm, '  # '));
  }
}

// One page with everything it complained about.
async function open(browser, path, options = {}, hash = '') {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce', ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => {
    // Reading the canvas back, as only this test does, earns a hint about speed.
    if (['error', 'warning'].includes(message.type()) && !/readback/.test(message.text()))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', async (dialog) => {
    complaints.push(`a dialog opened: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith('file:')) complaints.push(`a request left: ${request.url()}`);
  });
  await page.goto(fileUrl(path) + hash);
  await page.waitForFunction(() => document.getElementById('flame')?.flame !== undefined);
  const settle = () => page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done))));
  await settle();
  return {
    page,
    complaints,
    settle,
    state: () => page.evaluate(() => document.getElementById('flame').flame.state()),
    rectangle: (node) =>
      page.evaluate((n) => document.getElementById('flame').flame.rectangleOf(n), node),
    text: (selector) => page.locator(selector).innerText(),
    async press(key) {
      await page.keyboard.press(key);
      await settle();
    },
    close: () => context.close(),
  };
}

// A drawn node with a caller and a drawn child that is wide enough to click.
function findNode(view, least) {
  return view.page.evaluate((width) => {
    const { flame } = document.getElementById('flame');
    const { tree } = flame.profile;
    for (let n = 1; n < tree.size; n++) {
      const box = flame.rectangleOf(n);
      if (box && box.width >= width && box.width < innerWidth * 0.9 && tree.parent[n] !== 0
        && tree.firstChild[n] > 0)
        return { node: n, box, func: tree.func[n], name: flame.profile.names[tree.func[n]] };
    }
    return null;
  }, least);
}

// A fingerprint of what the canvas shows.
function pixels(view, selector = '.stage > .graph canvas') {
  return view.page.evaluate((s) => {
    const canvas = document.querySelector(s);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let h = 0;
    let painted = 0;
    for (let i = 0; i < data.length; i += 4) {
      h = (Math.imul(h, 31) + data[i] + (data[i + 1] << 8) + (data[i + 2] << 16)) | 0;
      if (data[i + 3] !== 0) painted++;
    }
    return { hash: h, painted };
  }, selector);
}

// Forty seconds of three threads, each of which samples a leaf of its own ten times a second.
function timed(document) {
  const { default_type: type, self, nodes } = document;
  const leaves = self[type].flatMap((value, node) => (value > 0 ? [node] : []));
  const count = 400;
  const sample = (thread, i) => leaves[(thread * 7 + i) % leaves.length];
  const threads = [0, 1, 2];
  const samples = threads.flatMap((thread) => Array.from({ length: count }, (_, i) => sample(thread, i)));
  const values = new Array(nodes.up.length + 1).fill(0);
  samples.forEach((node) => { values[node] += 1e7; });
  return { ...document, self: self.map((column, t) => (t === type ? values : column)), times: {
    start: 1700000000.25, node: samples, value: samples.map(() => 1e7),
    threads: threads.map((thread) => ({ name: `worker ${thread}`, pid: 100, tid: 101 + thread, samples: count })),
    after: threads.flatMap((thread) => Array.from({ length: count }, (_, i) => (i === 0 ? 99_000 + thread : 100_000))),
  } };
}

// The same with small frames folded away, and the values of all functions: about 2 s each.
function pruned(document) {
  const { strings, functions, nodes, types } = document;
  const name = functions.name.slice();
  name[nodes.function.at(-1)] = strings.length;
  const column = name.map((_, f) => 2e9 + f);
  const columns = types.map(() => column);
  return { ...document, strings: [...strings, '(other)'], functions: { ...functions, name }, dropped: 9,
    table: { self: columns, total: columns } };
}

const again = (browser, path, hash) => open(browser, path, {}, hash);

async function checkPage(browser, path) {
  const label = basename(path);
  const view = await open(browser, path);
  const { page } = view;
  const profile = await page.evaluate(() => {
    const { kind, types, title, names } = document.getElementById('flame').flame.profile;
    return { kind, types, title, names };
  });

  await check(`${label}: mounts, draws and complains of nothing`, async () => {
    assert.equal(await view.text('h1'), profile.title);
    assert.ok((await pixels(view)).painted > 1000, 'the canvas is empty');
    assert.deepEqual(view.complaints, []);
  });

  await check(`${label}: every control has a name`, async () => {
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll('button, input, select, [role=application], [role=grid]')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim()))
        .map((e) => e.outerHTML));
    assert.deepEqual(unnamed, []);
  });

  const target = await findNode(view, 40);
  await check(`${label}: hover tells what a frame is`, async () => {
    assert.ok(target, 'no frame is wide enough to test with');
    await page.mouse.move(target.box.x + 10, target.box.y + 8);
    const tip = await view.text('.tooltip');
    assert.ok(tip.includes(target.name), tip);
    assert.match(tip, /Total[\s\S]*Self/);
    assert.match(tip, /%/);
  });

  await check(`${label}: a click zooms, and the URL says so`, async () => {
    const before = await pixels(view);
    await page.mouse.click(target.box.x + 10, target.box.y + 8);
    await view.settle();
    assert.equal((await view.state()).zoom, target.node);
    assert.match(page.url(), /[#&]zoom=[0-9a-z]{8,}/);
    const box = await view.rectangle(target.node);
    const root = await view.rectangle(0);
    assert.ok(Math.abs(box.width - root.width) < 1, 'the zoomed frame is not full width');
    assert.notEqual((await pixels(view)).hash, before.hash);
    assert.ok((await view.text('.crumbs')).includes(target.name));
  });

  await check(`${label}: a copied URL opens the same view`, async () => {
    const copy = await open(browser, path, {}, new URL(page.url()).hash);
    assert.deepEqual(await copy.state(), await view.state());
    assert.deepEqual(copy.complaints, []);
    await copy.close();
  });

  await check(`${label}: Escape, breadcrumb, double click and Back lead out`, async () => {
    await view.press('Escape');
    assert.equal((await view.state()).zoom, 0);
    await page.mouse.click(target.box.x + 10, target.box.y + 8);
    await page.locator('.crumbs button').first().click();
    assert.equal((await view.state()).zoom, 0);
    await page.mouse.dblclick(target.box.x + 10, target.box.y + 8);
    assert.equal((await view.state()).zoom, 0);
    await page.mouse.move(2, 2);
    await page.waitForTimeout(600);
    await page.mouse.click(target.box.x + 10, target.box.y + 8);
    assert.equal((await view.state()).zoom, target.node);
    await page.goBack();
    await until(async () => assert.equal((await view.state()).zoom, 0));
  });

  await check(`${label}: search shows the matched share`, async () => {
    const before = await pixels(view);
    await view.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
    await page.keyboard.type(target.name);
    await view.settle();
    assert.match(await view.text('.found'), /^(<?[\d.]+%)$/);
    assert.match(await view.text('.found-line'), /^\d[\d,]* functions? matched: <?[\d.]+% of total/);
    assert.notEqual((await pixels(view)).hash, before.hash);
    await page.locator('.search-regex').click();
    await page.locator('.search-input').fill('(');
    assert.match(await view.text('.found-line'), /Invalid regular expression/);
    await page.locator('.search-regex').click();
    await page.locator('.search-input').fill('');
    assert.equal(await view.text('.found-line'), '');
    await view.press('Escape');
  });

  await check(`${label}: flip turns the graph over`, async () => {
    const top = (await view.rectangle(0)).y;
    await view.press('f');
    assert.equal((await view.state()).flip, true);
    assert.ok((await view.rectangle(0)).y > top + 40);
    await view.press('f');
    assert.equal((await view.rectangle(0)).y, top);
  });

  await check(`${label}: arrow keys, Enter and u move through the graph`, async () => {
    await page.locator('.stage > .graph').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowLeft'])
      await view.press(key);
    const name = await view.text('.status-name');
    assert.notEqual(name, 'all');
    await view.press('Enter');
    const { zoom } = await view.state();
    assert.ok(zoom > 0);
    await view.press('u');
    assert.ok((await view.state()).zoom < zoom);
    await view.press('Escape');
    assert.equal((await view.state()).zoom, 0);
  });

  if (profile.types.length > 1)
    await check(`${label}: the sample type switches`, async () => {
      const before = await view.text('.legend');
      const { type } = await view.state();
      const other = (type + 1) % profile.types.length;
      await page.locator('[aria-label="Sample type"]').selectOption(String(other));
      await view.settle();
      assert.equal((await view.state()).type, other);
      assert.notEqual(await view.text('.legend'), before);
      assert.ok((await view.text('.legend')).includes(profile.types[other].name));
      await page.locator('[aria-label="Sample type"]').selectOption(String(type));
    });

  await check(`${label}: the sandwich of the selected function`, async () => {
    await page.mouse.click(target.box.x + 10, target.box.y + 8);
    await view.press('s');
    const state = await view.state();
    assert.equal(state.view, 'sandwich');
    assert.equal(state.func, target.func);
    assert.ok((await view.text('.sandwich-title')).includes(target.name));
    assert.equal(await page.locator('.sandwich .graph').count(), 2);
    for (const which of [0, 1]) {
      const painted = await pixels(view, `.sandwich .graph:nth-of-type(${which === 0 ? 2 : 4}) canvas`);
      assert.ok(painted.painted > 100, `side ${which} is empty`);
    }
    await page.screenshot({ path: join(outdir, `${label}-sandwich.png`) });
    await view.press('g');
    await view.press('Escape');
  });

  await check(`${label}: the table lists, sorts, filters and leads to the sandwich`, async () => {
    await view.press('t');
    assert.equal((await view.state()).view, 'table');
    const first = () => page.locator('.stage > .table:not(.call-tree) .table-row').first().innerText();
    const names = () => page.locator('.stage > .table:not(.call-tree) .table-name')
      .evaluateAll((cells) => cells.map((cell) => cell.title));
    const byValue = await first();
    await page.locator('.stage > .table:not(.call-tree) .table-sort').first().click();
    assert.notEqual(await page.locator('.stage > .table:not(.call-tree) [aria-sort=ascending]').count(), 0);
    const shown = await names();
    assert.deepEqual(shown, [...shown].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    await page.locator('.stage > .table:not(.call-tree) .table-sort').nth(profile.kind === 'diff' ? 3 : 1).click();
    assert.equal(await first(), byValue);
    await view.press('Enter');
    assert.equal(await page.locator('.stage > .table:not(.call-tree) [aria-sort=ascending]').count(), 1,
      'the focused header does not sort by keyboard');
    await view.press('Enter');
    assert.equal(await first(), byValue);
    await page.locator('.search-input').fill(target.name);
    for (const name of await names())
      assert.ok(name.toLowerCase().includes(target.name.toLowerCase()), name);
    await page.locator('.search-input').fill('');
    await page.screenshot({ path: join(outdir, `${label}-table.png`) });
    await page.locator('.stage > .table:not(.call-tree)').focus();
    await view.press('ArrowDown');
    await view.press('Enter');
    assert.equal((await view.state()).view, 'sandwich');
    await view.press('g');
  });

  await check(`${label}: table and graph side by side, one finding what the other chose`, async () => {
    await view.press('b');
    assert.equal((await view.state()).view, 'both');
    const plain = await pixels(view);
    const row = page.locator('.stage > .table:not(.call-tree) .table-row').first();
    // Where there is little room for names, their last part stays, whole or cut itself.
    const cells = await page.locator('.stage > .table:not(.call-tree) .table-name').evaluateAll((list) =>
      list.map((cell) => ({
        whole: cell.title, shown: cell.querySelector('.table-function').textContent, read: cell.ariaLabel,
      })));
    for (const { whole, shown, read } of cells) {
      assert.ok(shown === whole || read === whole, `${shown} is read as ${read}, not ${whole}`);
      assert.ok(whole.includes(shown.replace(/…$/, '').split('::').pop()), `${shown}: ${whole}`);
    }
    assert.ok(cells.some(({ whole, shown }) => shown !== whole && !whole.startsWith(shown.slice(0, 4))),
      'no long name keeps its end');
    await row.click();
    await view.settle();
    assert.ok((await view.state()).picked >= 0);
    assert.notEqual((await pixels(view)).hash, plain.hash, 'the function does not stand out');
    await page.screenshot({ path: join(outdir, `${label}-both.png`) });
    await view.press('Escape');
    assert.equal((await view.state()).picked, -1);
    assert.equal((await pixels(view)).hash, plain.hash);
    await view.press('g');
  });

  await check(`${label}: the call tree opens and closes by keyboard`, async () => {
    await view.press('e');
    assert.equal((await view.state()).view, 'tree');
    const rows = () => page.locator('.call-tree .table-row').count();
    const level = () => page.locator('.call-tree .table-active').getAttribute('aria-level');
    await view.press('ArrowDown');
    assert.equal(await level(), '1');
    const open = await rows();
    await view.press('ArrowLeft');
    assert.equal(await rows(), 1, 'the root did not close');
    await view.press('ArrowRight');
    assert.ok(await rows() > 1);
    assert.ok(open > 1);
    await view.press('ArrowDown');
    assert.equal(await level(), '2');
    assert.notEqual(await view.text('.status-name'), 'all');
    assert.match(page.url(), /open=/);
    const copy = await again(browser, path, new URL(page.url()).hash);
    assert.equal(await copy.page.locator('.call-tree .table-row').count(), await rows());
    await copy.close();
    await page.screenshot({ path: join(outdir, `${label}-tree.png`) });
    await view.press('g');
  });

  await check(`${label}: a frame's menu hides it, and undo brings it back`, async () => {
    await view.press('Escape');
    const { node, box, name } = await findNode(view, 60);
    const shown = await pixels(view);
    await page.mouse.click(box.x + 10, box.y + 8, { button: 'right' });
    assert.ok(await page.locator('.context').isVisible());
    assert.ok((await view.text('.context-title')).includes(name.slice(0, 20)));
    await page.locator('.context-item', { hasText: 'Hide this function' }).click();
    await view.settle();
    assert.equal((await view.state()).hidden.length, 1);
    assert.ok((await view.text('.filters')).includes('hidden: '));
    assert.notEqual((await pixels(view)).hash, shown.hash);
    const copy = await again(browser, path, new URL(page.url()).hash);
    assert.deepEqual((await copy.state()).hidden, (await view.state()).hidden);
    assert.equal((await pixels(copy)).painted, (await pixels(view)).painted);
    await copy.close();
    await view.press('z');
    assert.deepEqual((await view.state()).hidden, []);
    assert.ok(!(await page.locator('.filters').isVisible()));
    await page.locator('.stage > .graph').focus();
    await page.mouse.click(box.x + 10, box.y + 8, { button: 'right' });
    await view.press('ArrowDown');
    await view.press('Escape');
    assert.ok(!(await page.locator('.context').isVisible()));
    assert.equal((await view.state()).zoom, 0, 'the menu let a key through');
    assert.ok(node > 0);
  });

  await check(`${label}: recursion and libraries collapse, and one binary can be looked at`, async () => {
    const size = () => page.evaluate(() => document.getElementById('flame').flame.profile.tree.size);
    const whole = await size();
    await view.press('r');
    assert.ok(await size() < whole);
    await view.press('r');
    // A program that is one binary has no libraries.
    const libraries = await page.evaluate(() =>
      document.getElementById('flame').flame.profile.binaries.includes('libc.so.6'));
    if (!libraries) return;
    await view.press('l');
    assert.ok(await size() < whole);
    await view.press('r');
    assert.match(page.url(), /recursion=once&fold=\*/);
    await page.locator('.options summary').click();
    await page.locator('[aria-label="Stacks through"]').selectOption('libc.so.6');
    await view.settle();
    assert.equal((await view.state()).only, 'libc.so.6');
    await page.screenshot({ path: join(outdir, `${label}-collapsed.png`) });
    await page.keyboard.press('Escape');
    for (let left = 3; left > 0; left--) {
      assert.equal(await page.locator('.filter').count(), left);
      await page.locator('.filter').first().click();
      await view.settle();
    }
    assert.equal(await size(), whole);
    if (profile.kind === 'flame') {
      const before = await pixels(view);
      await view.press('p');
      assert.match(await view.text('.legend'), /Colour is the binary\./);
      assert.notEqual((await pixels(view)).hash, before.hash);
      await view.press('p');
    }
  });

  await check(`${label}: the theme toggles and the help opens`, async () => {
    const theme = () => page.getAttribute('.flame', 'data-theme');
    assert.equal(await theme(), 'light');
    const light = await pixels(view);
    await view.press('d');
    assert.equal(await theme(), 'dark');
    assert.notEqual((await pixels(view)).hash, light.hash);
    await view.press('c');
    assert.equal(await page.getAttribute('.flame', 'data-palette'), 'safe');
    await view.press('c');
    await view.press('d');
    await view.press('?');
    assert.ok(await page.locator('dialog.help').isVisible());
    assert.ok((await view.text('dialog.help')).includes('search functions'));
    await view.press('Escape');
    assert.ok(!(await page.locator('dialog.help').isVisible()));
  });

  if (profile.kind === 'diff')
    await check(`${label}: the legend explains the diff`, async () => {
      const legend = await view.text('.legend');
      assert.match(legend, /Width is the new value; red grew, blue shrank, grey unchanged\./);
      assert.match(legend, /ormalised/);
      await page.mouse.move(target.box.x + 10, target.box.y + 8);
      assert.match(await view.text('.tooltip'), /before\s+after\s+change/);
    });

  await check(`${label}: nothing in it all was complained of`, async () => {
    assert.deepEqual(view.complaints, []);
  });
  await view.close();

  for (const colorScheme of ['light', 'dark'])
    for (const [width, height] of [[1280, 800], [390, 844]]) {
      const shot = await open(browser, path, { colorScheme, viewport: { width, height } });
      await check(`${label}: fits ${width} px, ${colorScheme}`, async () => {
        assert.equal(await shot.page.getAttribute('.flame', 'data-theme'), colorScheme);
        const wide = await shot.page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `the page is ${wide} px wide`);
        assert.ok((await shot.rectangle(0)).width > 0.9 * width);
        await shot.page.screenshot({ path: join(outdir, `${label}-${width}-${colorScheme}.png`) });
      });
      await shot.close();
    }
}

async function checkHostile(browser, path, hostile) {
  const view = await open(browser, path);
  await check('markup in a name is shown as text', async () => {
    const node = await view.page.evaluate((name) => {
      const { tree, names } = document.getElementById('flame').flame.profile;
      return tree.func.indexOf(names.indexOf(name));
    }, hostile);
    await view.page.evaluate((n) => {
      const { flame } = document.getElementById('flame');
      flame.show({ ...flame.state(), zoom: n });
    }, node);
    await view.settle();
    assert.ok((await view.text('.crumbs')).includes(hostile));
    const box = await view.rectangle(node);
    await view.page.mouse.move(box.x + 50, box.y + 8);
    assert.ok((await view.text('.tooltip')).includes(hostile));
    await view.press('t');
    await view.page.locator('.search-input').fill(hostile);
    assert.equal(await view.text('.stage > .table:not(.call-tree) .table-function'), hostile);
    assert.equal(await view.page.locator('#flame script, #flame img').count(), 0);
    assert.deepEqual(view.complaints, []);
  });
  await view.close();
}

// 200,000 frames are drawn, searched, zoomed and simplified, and every frame counts.
async function checkLarge(browser, path, nodes) {
  await check(`${nodes.toLocaleString('en')} frames are drawn, searched and zoomed`, async () => {
    const view = await open(browser, path);
    const { page } = view;
    assert.equal(await page.evaluate(() => document.getElementById('flame').flame.profile.tree.size), nodes);
    assert.ok((await pixels(view)).painted > 1000);
    const target = await findNode(view, 40);
    await page.mouse.click(target.box.x + 10, target.box.y + 8);
    await view.settle();
    assert.equal((await view.state()).zoom, target.node);
    await view.press('Escape');
    const matched = await page.evaluate(() => {
      const { profile } = document.getElementById('flame').flame;
      const { tree, names, self } = profile;
      const found = new Uint8Array(tree.size);
      let [whole, sum] = [0, 0];
      for (let n = 1; n < tree.size; n++) {
        found[n] = found[tree.parent[n]] || Number(names[tree.func[n]].includes('method77('));
        whole += self[0][n];
        if (found[n]) sum += self[0][n];
      }
      return sum / whole;
    });
    await view.press('/');
    await page.keyboard.type('method77(');
    await view.settle();
    const shown = /: <?([\d.]+)% of total/.exec(await view.text('.found-line'));
    assert.ok(Math.abs(Number(shown[1]) / 100 - matched) < 0.001, `${shown[0]}, not ${matched}`);
    await page.locator('.search-input').fill('');
    await page.evaluate(() => document.activeElement.blur());
    // All of it is of libraries: only the root is left.
    await view.press('y');
    assert.equal(await page.evaluate(() => document.getElementById('flame').flame.profile.tree.size), 1);
    await view.press('y');
    assert.equal(await page.evaluate(() => document.getElementById('flame').flame.profile.tree.size), nodes);
    assert.deepEqual(view.complaints, []);
    await view.close();
  });
}

async function checkOddities(browser, generator, template) {
  const write = (name, document) => writePage(scratch, name, generator.fillPage(template, document));
  const base = generator.service(300);

  await check('a damaged document is refused in a sentence', async () => {
    const path = write('damaged.html', { ...base, version: 9 });
    const page = await browser.newPage();
    await page.goto(fileUrl(path));
    assert.match(await page.locator('[role=alert]').innerText(), /version is 9.*version 1 only\.$/);
    await page.close();
  });

  await check('the empty template says that it is one', async () => {
    const page = await browser.newPage();
    await page.goto(fileUrl(writePage(scratch, 'empty.html', template)));
    assert.match(await page.locator('[role=alert]').innerText(), /no flame data/);
    await page.close();
  });

  await check('an empty profile and negative values are drawn', async () => {
    const zero = write('zero.html', { ...base, self: base.self.map((c) => c.map(() => 0)) });
    const view = await open(browser, zero);
    assert.match(await view.text('.empty'), /no values of this type/);
    for (const key of ['t', 's', 'g', 'ArrowDown', 'Enter', 'f']) await view.press(key);
    assert.deepEqual(view.complaints, []);
    await view.close();
    const signed = { ...base, self: base.self.map((c) => c.map((v, i) => (i % 3 ? v : -v))) };
    const negative = await open(browser, write('negative.html', signed));
    assert.match(await negative.text('.legend'), /Negative values have no width/);
    for (const key of ['t', 's', 'g', 'ArrowDown', 'Enter', 'f']) await negative.press(key);
    assert.deepEqual(negative.complaints, []);
    await negative.close();
  });

  await check('states have colours where the profile has states', async () => {
    const plain = base.self[base.default_type];
    const view = await open(browser, write('states.html', { ...base, states: {
      names: ['RUNNING', 'SLEEPING'],
      self: [0, 1].map((which) => plain.map((value, node) => (node % 2 === which ? value : 0))),
    } }));
    const before = await pixels(view);
    await view.page.locator('.options summary').click();
    await view.page.getByLabel('Colour by').selectOption('state');
    await view.settle();
    assert.match(await view.text('.legend'), /RUNNING [\d.]+%\s*SLEEPING [\d.]+%/);
    assert.match(view.page.url(), /colour=state/);
    assert.notEqual((await pixels(view)).hash, before.hash);
    const copy = await again(browser, join(scratch, 'states.html'), new URL(view.page.url()).hash);
    assert.equal((await pixels(copy)).hash, (await pixels(view)).hash);
    assert.deepEqual(view.complaints, []);
    await copy.close();
    await view.close();
    const without = await open(browser, write('stateless.html', base));
    await without.page.locator('.options summary').click();
    assert.equal(await without.page.locator('option[value=state]').count(), 0);
    await without.close();
  });

  await check('a heat map and threads where samples have times', async () => {
    const view = await open(browser, write('times.html', timed(base)));
    await view.page.getByRole('button', { name: 'Time', exact: true }).click();
    await view.settle();
    const whole = (await view.state()).span;
    assert.equal(whole, '');
    const total = () => view.page.evaluate(() => {
      const { profile } = document.getElementById('flame').flame;
      return profile.self[profile.defaultType].reduce((a, b) => a + b);
    });
    const all = await total();
    // A quarter of the heat map is dragged: all of every other second.
    const box = await view.page.locator('.time-heat canvas').boundingBox();
    assert.ok(box.width > 300 && box.height > 100, JSON.stringify(box));
    const before = await pixels(view);
    await view.page.mouse.move(box.x + box.width * 0.25 + 2, box.y + 1);
    await view.page.mouse.down();
    await view.page.mouse.move(box.x + box.width * 0.5 - 2, box.y + box.height - 2, { steps: 3 });
    await view.page.mouse.up();
    await view.settle();
    assert.match((await view.state()).span, /^10000000-20000000$/);
    assert.match(view.page.url(), /span=10000000-20000000/);
    const part = await total();
    assert.ok(part > 0.2 * all && part < 0.3 * all, `${part} of ${all}`);
    assert.notEqual((await pixels(view)).hash, before.hash);
    // A copied address shows the same; an undone span shows everything.
    const copy = await again(browser, join(scratch, 'times.html'), new URL(view.page.url()).hash);
    assert.equal((await pixels(copy)).hash, (await pixels(view)).hash);
    await copy.close();
    await view.page.getByRole('button', { name: 'Undo: time: 10.000 s to 20.000 s' }).click();
    await view.settle();
    assert.equal(await total(), all);
    // A thread's samples, by a click and by keys, innermost function first.
    const rows = view.page.locator('.time-thread');
    assert.equal(await rows.count(), 3);
    await rows.nth(1).locator('canvas').click({ position: { x: 200, y: 8 } });
    const stack = view.page.getByRole('region', { name: 'Stack' });
    const first = await stack.getByRole('heading').innerText();
    assert.match(first, /^worker 1 \(102\) at [\d.]+ s$/);
    await view.press('ArrowRight');
    assert.notEqual(await stack.getByRole('heading').innerText(), first);
    assert.equal(await stack.getByRole('listitem').last().innerText(), base.strings[base.functions.name[base.nodes.function[0]]]);
    await view.press('ArrowUp');
    await view.press('ArrowRight');
    assert.match(await stack.getByRole('heading').innerText(), /^worker \d \(10\d\) at/);
    // The heat map by keys alone.
    await view.page.locator('.time-heat').focus();
    for (const key of ['ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'Enter']) await view.press(key);
    assert.equal((await view.state()).span, '1000000-2020000');
    await view.press('Escape');
    assert.equal((await view.state()).span, '');
    assert.deepEqual(view.complaints, []);
    await view.close();
    const without = await open(browser, join(scratch, 'stateless.html'), {}, '#view=time&span=1-2');
    assert.equal(await without.page.getByRole('button', { name: 'Time', exact: true }).count(), 0);
    assert.equal((await without.state()).view, 'graph');
    await without.close();
  });

  await check('a part of a pruned tree has no numbers that would be too small', async () => {
    const view = await open(browser, write('pruned.html', pruned(timed(base))), {}, '#view=both');
    const row = view.page.locator('.table-row').first();
    await until(async () => assert.match(await row.innerText(), /\b2\.00\s*s/, 'the exact table of the document'));
    const unknown = view.page.getByText('this call tree is too large for exact values of a part of it');
    assert.equal(await unknown.count(), 0);
    for (const part of ['span=10000000-20000000', 'recursion=once']) {
      const cut = await open(browser, join(scratch, 'pruned.html'), {}, `#view=both&${part}`);
      assert.equal(await cut.page.locator('.table-row').count(), 0, part);
      await cut.page.getByText('this call tree is too large for exact values of a part of it').waitFor();
      await cut.page.locator('.search-input').fill('a');
      await cut.settle();
      assert.match(await cut.text('.found-line'), /^Not available/);
      assert.deepEqual(cut.complaints, []);
      await cut.close();
    }
    await view.close();
  });

  await check('a zoom in motion ends where it should', async () => {
    const view = await open(browser, write('motion.html', base), { reducedMotion: 'no-preference' });
    const target = await findNode(view, 40);
    await view.page.mouse.click(target.box.x + 10, target.box.y + 8);
    await view.page.mouse.move(2, 2);
    const still = await open(browser, join(scratch, 'motion.html'), {}, new URL(view.page.url()).hash);
    await until(async () => assert.equal((await pixels(view)).hash, (await pixels(still)).hash));
    assert.deepEqual(view.complaints, []);
    await view.close();
    await still.close();
  });

  await check('a first tap tells, a second zooms', async () => {
    const view = await open(browser, join(scratch, 'motion.html'),
      { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });
    const target = await findNode(view, 30);
    await view.page.touchscreen.tap(target.box.x + 10, target.box.y + 8);
    assert.equal((await view.state()).zoom, 0);
    assert.equal(await view.text('.status-name'), target.name);
    await view.page.waitForTimeout(600);
    const { x, y } = await view.rectangle(target.node);
    await view.page.touchscreen.tap(x + 10, y + 8);
    assert.equal((await view.state()).zoom, target.node);
    await view.close();
  });

  await check('it prints on white, without controls', async () => {
    const view = await open(browser, join(scratch, 'motion.html'), { colorScheme: 'dark' });
    const pdf = await view.page.pdf({ format: 'A4', landscape: true, printBackground: true });
    assert.ok(pdf.length > 5000);
    await view.settle();
    assert.equal(await view.page.getAttribute('.flame', 'data-theme'), 'dark');
    assert.deepEqual(view.complaints, []);
    await view.close();
  });
}

const browser = await startBrowser();
try {
  if (positionals.length > 0) {
    for (const path of positionals) await checkPage(browser, path);
  } else {
    const generator = await loadGenerator();
    const template = readTemplate();
    const page = (name, document) =>
      writePage(scratch, name, generator.fillPage(template, document));
    const flame = page('flame.html', generator.service(2500));
    await checkPage(browser, flame);
    await checkPage(browser, page('diff.html', generator.serviceDiff(2500)));
    await checkHostile(browser, flame, generator.HOSTILE);
    await checkLarge(browser, page('large.html', generator.large(200_000, 20_000)), 200_000);
    await checkOddities(browser, generator, template);
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
if (failures > 0) {
  console.log(`${failures} ${failures === 1 ? 'check' : 'checks'} failed.`);
  process.exitCode = 1;
}
