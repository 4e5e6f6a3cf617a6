// SPDX-License-Identifier: Apache-2.0
// Tables, searches and shares of a fleet: with a thousand services hardly a frame is large enough to
// be drawn, and every number on the page is still that of all stacks.

import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { pprof } from '../pprof.mjs';
import { send } from '../served.mjs';
import { exported, fresh, painted, searchField } from './tools.mjs';
import { until } from '../support.mjs';

const SERVICES = 1000;
const here = dirname(fileURLToPath(import.meta.url));

async function units() {
  const { outputFiles } = await build({
    entryPoints: [join(here, '../../flame/data/units.ts')], bundle: true, format: 'esm', write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);
}

// Functions of its own for each service, and some that all have.
function stacksOf(service, side) {
  const out = [['main;entry_syscall;do_call0', 5e6]];
  for (let i = 0; i < 24; i++)
    out.push([i % 3 === 0 ? `main;s${service}.step${i};entry_syscall;do_call${i}`
      : `main;s${service}.step${i};s${service}.leaf${i % 8}`,
    ((service * 31 + i * 17) % 97 + 1) * 1e6 * (1 + side * (service % 2))]);
  return out;
}

function addUp(sides) {
  const functions = new Map();
  sides.forEach((stacks, side) => {
    for (const [stack, value] of stacks) {
      const path = stack.split(';');
      for (const name of new Set(path)) {
        const row = functions.get(name) ?? { name, self: [0, 0], total: [0, 0] };
        functions.set(name, row);
        row.total[side] += value;
        if (name === path.at(-1)) row.self[side] += value;
      }
    }
  });
  return [...functions.values()];
}

// The rows of a table on the page that are in view, by name, as their cells' texts.
const rowsOf = (page, label) => page.getByRole('grid', { name: label, exact: true }).evaluate((grid) =>
  [...grid.querySelectorAll('.table-row')].map((row) =>
    [...row.querySelectorAll('.table-cell')].map((cell) => [...cell.querySelectorAll(
      '.table-value, .table-aside')].map((part) => part.textContent).join(' ') || cell.textContent)));

export async function tables(browser, { url }) {
  const { formatValue, formatPercent, formatChange } = await units();
  const at = Math.floor(Date.now() / 1000) - 7200; // before what others have, however fast the story is
  const fleet = [0, 1].map((side) => Array.from({ length: SERVICES }, (_, s) => stacksOf(s, side)));
  const jobs = [0, 1].flatMap((side) => fleet[side].map((stacks, s) => () =>
    send(url, `/api/v1/push?service_name=fleet${s}`, pprof(stacks, { at: at - (1 - side) * 3600 }))));
  while (jobs.length > 0) await Promise.all(jobs.splice(0, 16).map((job) => job()));
  const truth = addUp(fleet.map((side) => side.flat()));
  const whole = fleet[1].flat().reduce((sum, [, value]) => sum + value, 0);
  const cells = ({ name, self, total }) => [name, ...[self[1], total[1]].map((value) =>
    `${formatValue(value, 'nanoseconds')} ${formatPercent(value / whole)}`)];
  const known = new Map(truth.map((row) => [row.name, row]));
  const selection = `query=${encodeURIComponent('cpu{service_name=~"fleet.*"}')}&from=${at - 60}&to=${at + 60}`;
  const isExact = async (page, first) => until(async () => {
    const rows = await rowsOf(page, 'Functions');
    assert.ok(rows.length > 10);
    assert.equal(rows[0][0], first);
    for (const row of rows) assert.deepEqual([row[0].split(' ')[0], ...row.slice(1)], cells(known.get(row[0])), row[0]);
  });

  const { context, page } = await fresh(browser, {}, /404/); // functions without a previous period
  await page.goto(`${url}/explore?${selection}`);
  await painted(page);
  const largest = [...truth].sort((a, b) => b.self[1] - a.self[1]);
  await isExact(page, largest[0].name);
  await page.getByText(/\(other\) stands for frames that are too small to draw: .* of total/).waitFor();
  await page.getByRole('columnheader', { name: 'Total' }).getByRole('button').click();
  await isExact(page, 'main');
  // What a search accounts for: each stack once.
  await searchField(page).fill('do_call');
  const found = fleet[1].flat().reduce((sum, [stack, value]) => sum + (/do_call/.test(stack) ? value : 0), 0);
  await page.getByText(`8 functions matched: ${formatPercent(found / whole)} of total`).waitFor();
  await searchField(page).fill('s77.leaf');
  const own = fleet[1].flat().reduce((sum, [stack, value]) => sum + (/;s77\.leaf/.test(stack) ? value : 0), 0);
  await page.getByText(`matched: ${formatPercent(own / whole)} of total`).waitFor();
  // Callers and callees of a function that all services call, from all stacks.
  await page.goto(`${url}/explore?${selection}&flame=${encodeURIComponent('view=sandwich&search=entry')}`);
  const title = page.locator('.sandwich-title');
  await page.getByRole('grid', { name: 'Functions to choose from' }).getByText('entry_syscall').first().click();
  const entry = known.get('entry_syscall').total[1];
  const entryIsExact = () => until(async () => assert.match(await title.textContent(), new RegExp(
    `^entry_syscall${formatValue(entry, 'nanoseconds')}, ${formatPercent(entry / whole)} of total$`
      .replaceAll('.', '\\.'))));
  await entryIsExact();
  // The page that is taken along has all functions.
  const { content } = await exported(page, 'Page (HTML)');
  const data = JSON.parse(/id="flame-data">(.*?)<\/script>/s.exec(content.toString())[1]);
  assert.equal(data.functions.name.length, truth.length);
  // The same of a comparison.
  await page.goto(`${url}/compare?${selection}&base_from=${at - 3660}&base_to=${at - 3540}&normalize=none`);
  const grown = [...truth].sort((a, b) => b.self[1] - b.self[0] - (a.self[1] - a.self[0]));
  await until(async () => {
    const rows = await rowsOf(page, 'Functions');
    assert.ok(rows.length > 10);
    for (const row of rows) {
      const { self } = known.get(row[0]) ?? {};
      const changes = row.filter((cell) => cell.startsWith(formatChange(self[1] - self[0], 'nanoseconds')));
      assert.ok(changes.length > 0, `${row} ${self}`);
    }
    assert.equal(rows[0][0], grown[0].name);
  });
  await page.goto(`${url}/compare?${selection}&base_from=${at - 3660}&base_to=${at - 3540}&normalize=none&flame=${
    encodeURIComponent('view=sandwich&search=entry')}`);
  await page.getByRole('grid', { name: 'Functions to choose from' }).getByText('entry_syscall').first().click();
  await entryIsExact();
  await pagesOfAFleet(page, url, selection, formatPercent);
  await context.close();
}

// The pages of the fleet, row for row as the API has it: functions, packages and services.
async function pagesOfAFleet(page, url, selection, formatPercent) {
  // A server with much to do asks to come back.
  const ask = (path) => until(async () => {
    const response = await fetch(`${url}/api/v1/${path}`);
    const text = await response.text();
    assert.ok(response.ok, text);
    return JSON.parse(text);
  });
  const cells = async () => page.locator('tbody tr').evaluateAll((rows) => rows.map((row) =>
    [...row.children].map((cell) => cell.textContent.trim())));
  for (const rows of ['function', 'package']) {
    const { functions, total, function_count: count } = await ask(`top?${selection}&limit=50&rows=${rows}`);
    await page.goto(`${url}/functions?${selection}&rows=${rows}`);
    await page.getByText(new RegExp(`(^|of )${count.toLocaleString('en')} ${rows}s`)).waitFor();
    await until(async () => {
      const shown = await cells();
      assert.equal(shown.length, Math.min(50, count));
      // The same order among equals, and the same shares of self and total.
      assert.deepEqual(shown.map(([name, ...values]) => [name, ...values.flatMap((text) => /[\d.]+%/.exec(text) ?? []).slice(0, 2)]),
        functions.map((row) => [row.function, formatPercent(row.flat / total), formatPercent(row.cum / total)]));
    });
  }
  const range = selection.slice(selection.indexOf('from='));
  const { series } = await ask(`timeseries?query=${encodeURIComponent('cpu{}')}&${range}&step=10&group_by=service_name&limit=10000`);
  const sums = series.map(({ labels, points }) => [labels.service_name, points.reduce((sum, [, value]) => sum + value, 0)]);
  const whole = sums.reduce((sum, [, value]) => sum + value, 0);
  await page.goto(`${url}/?${range}`);
  await page.getByText(new RegExp(`^${sums.length.toLocaleString('en')} services, together`)).waitFor();
  await until(async () => {
    const shown = await cells();
    const shares = new Map(sums.map(([name, value]) => [name, formatPercent(value / whole)]));
    assert.equal(shown.length, 50);
    for (const row of shown) assert.equal(row[3], shares.get(row[0]), row[0]);
    assert.deepEqual(new Set(shown.slice(0, 1).map(([name]) => name)), new Set([sums.sort((a, b) => b[1] - a[1])[0][0]]));
  });
}
