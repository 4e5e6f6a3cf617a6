// SPDX-License-Identifier: Apache-2.0
// The story's accessibility: axe on every page, light, dark and as wide as a phone; one <main> and one
// <h1>; arrow keys from the first press; focus that never falls back to the beginning of the page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { call } from '../served.mjs';
import { fresh, painted, query, settle } from './tools.mjs';
import { until } from '../support.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LOOKS = [
  { name: 'light', width: 1280, colorScheme: 'light' }, { name: 'dark', width: 1280, colorScheme: 'dark' },
  { name: 'phone', width: 390, colorScheme: 'light' },
];

const side = (ago) => Math.floor(Date.now() / 1000) - ago;
const changes = () => `query=${query('checkout')}&from=${side(600)}&to=${side(0)}&base_from=${side(1500)}&base_to=${side(900)}`;
const flame = (view) => `&flame=${encodeURIComponent(`view=${view}`)}`;
// Every page, and every view of those that have several.
const pages = (requests) => {
  const one = `/explore?query=${query('checkout')}`;
  return ['/', '/explore', `${one}&group=version`, one + flame('tree'), one + flame('table'), one + flame('sandwich'),
    `${one}&tab=who`, `${one}&tab=lines`, `${one}&tab=raw`, '/functions', `/compare?${changes()}`,
    `/compare?${changes()}&layout=apart`, `/function?query=${query('checkout')}&name=render`, '/alerts', '/explain', '/explain?service=checkout', '/findings', '/files',
    '/recordings', '/requests', `${requests}/requests`,
    `${requests}/requests?query=${encodeURIComponent('service="shop"')}&band=p99`, '/agents', '/symbols', '/saved', '/triage',
    `/triage?query=${encodeURIComponent('wall{service_name="convoy"}')}`, '/nothing-here', '/explore?from=nonsense', '/?from=1990-01-01&to=1990-01-02'];
};

// Something on every page.
export async function furnish({ url }) {
  const post = (path, body) => call('POST', `${url}/api/v1/${path}`, {
    body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
  for (const host of ['web-1', 'web-2']) await report(url, host);
  const range = { from: side(1200), to: side(600) };
  for (const [path, body] of Object.entries({
    views: { name: 'checkout by version', address: `/explore?query=${query('checkout')}&group=version` },
    notes: { ...range, service: 'checkout', text: 'cold cache' }, pins: { ...range, reason: 'incident 12', expires: side(-30 * 86400) },
    control: { sampling: { rate: 9 }, selector: '{host="web-2"}', reason: 'too busy' },
    recordings: { service: 'checkout', rate: 99, seconds: 10, hosts: ['web-1'] } })) {
    const { status, text } = await post(path, body);
    assert.ok(status < 300, `${path}: ${status} ${text}`);
  }
}

async function examine(page, what) {
  await page.evaluate(AXE);
  const { violations, ...counts } = await page.evaluate(async () => ({
    violations: (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations
      .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')}`),
    main: document.querySelectorAll('main').length,
    h1: document.querySelectorAll('h1').length,
  }));
  assert.deepEqual(violations, [], what);
  assert.deepEqual(counts, { main: 1, h1: 1 }, what);
}

// `requests` is the address of a server that has some.
export async function axe(browser, { url }, requests) {
  let count = 0;
  for (const { name, width, colorScheme } of LOOKS) {
    const { context, page } = await fresh(browser, { viewport: { width, height: 900 }, colorScheme }, /404/);
    for (const path of pages(requests)) {
      await page.goto(new URL(path, url).href);
      await page.locator('h1').first().waitFor({ state: 'attached' });
      await page.waitForLoadState('networkidle');
      await settle(page);
      await examine(page, `${name} ${path}`);
      count++;
    }
    await context.close();
  }
  // What opens over a page: help, menus, dialogs.
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(`${url}/explore?query=${query('checkout')}&group=version`);
  await painted(page);
  await page.getByRole('button', { name: /^2\.0 / }).click();
  await page.getByRole('menu').waitFor();
  await examine(page, 'the menu of a legend');
  await page.keyboard.press('Escape');
  await page.locator('details.picker').last().locator('summary').click();
  await examine(page, 'the export menu');
  await page.goto(`${url}/agents`);
  await page.getByRole('button', { name: 'Control…' }).click();
  await page.getByRole('dialog', { name: 'Control agents' }).waitFor();
  await examine(page, 'control');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await examine(page, 'help');
  await context.close();
  console.log(`# axe reports nothing on ${count} views and 4 menus and dialogs`);
}

const focused = (page) => page.evaluate(() => document.activeElement.tagName);

export async function focus(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  // The first arrow key reaches the first row, and the next one the second.
  await page.goto(url);
  await page.locator('tbody th a').first().waitFor();
  await page.keyboard.press('ArrowDown');
  const row = () => page.evaluate(() => [...document.querySelectorAll('tbody th a')].indexOf(document.activeElement));
  assert.equal(await row(), 0);
  await page.keyboard.press('ArrowDown');
  assert.equal(await row(), 1);
  // A click on nothing leaves it in the page.
  await page.mouse.click(900, 760);
  assert.notEqual(await focused(page), 'BODY');
  await page.mouse.click(760, 24); // beside the menu
  assert.notEqual(await focused(page), 'BODY');

  // The graph hears the first arrow key, too.
  await page.goto(`${url}/explore?query=${query('checkout')}`);
  await painted(page);
  await page.keyboard.press('ArrowDown');
  await until(async () => assert.match(await page.locator('.flame footer').innerText(), /all|main/));
  await page.keyboard.press('ArrowDown');
  await until(async () => assert.match(await page.locator('.flame footer').innerText(), /main|serve/));
  // What was pressed goes away: a chip of a label, a view that is closed, a region of the chart.
  const now = side(0);
  await page.goto(`${url}/explore?query=${query('checkout', ',version="2.0"')}&part=${now - 600}-${now - 300}`);
  await painted(page);
  for (const name of ['Close Shown below', 'Remove version']) {
    const button = page.getByRole('button', { name });
    await button.focus();
    await page.keyboard.press('Enter');
    await button.waitFor({ state: 'detached' });
    await until(async () => assert.notEqual(await focused(page), 'BODY', name));
  }
  await context.close();
}

const report = (url, host) => call('POST', `${url}/api/v1/agents/report`, { body: JSON.stringify({
  agent: `agent-of-${host}`, host, version: '0.1.0', labels: { host, region: 'eu', service_name: 'checkout' }, capture: 'on',
  sent_at: Date.now() / 1000, status: { rate_hz: 19 }, recordings: [] }) });

// Orders are given after they were read again, and are written down.
export async function orders(browser, { url }) {
  await report(url, 'web-1');
  await report(url, 'web-2');
  const control = async () => JSON.parse((await call('GET', `${url}/api/v1/control`)).text);
  const { context, page } = await fresh(browser, {}, /400/); // an order that can't be read
  await page.goto(`${url}/agents`);
  const dialog = page.getByRole('dialog', { name: 'Control agents' });
  await page.getByRole('button', { name: 'Control web-2' }).click();
  await dialog.getByLabel('CPU samples per second').fill('9');
  await dialog.getByLabel('Wall time', { exact: true }).selectOption('off');
  await dialog.getByLabel('Reason').fill('too busy');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByText('CPU at 9 Hz, wall time off for the agent matching {host="web-2"}?').waitFor();
  assert.deepEqual((await control()).sampling, [], 'nothing is ordered before it is confirmed');
  await dialog.getByRole('button', { name: 'Give the order' }).click();
  await page.getByRole('row', { name: /CPU at 9 Hz, wall time off.*web-2.*too busy/ }).waitFor();
  const [{ sampling, selector, reason }] = (await control()).sampling;
  assert.deepEqual({ sampling, selector, reason },
    { sampling: { rate: 9, wall: false }, selector: '{host="web-2"}', reason: 'too busy' });
  const asked = JSON.parse((await call('GET', `${url}/api/v1/agents/orders?agent=agent-of-web-2`)).text);
  assert.equal(asked.sampling?.rate, 9);

  // The switch of all.
  await page.getByRole('button', { name: 'Control…' }).click();
  await dialog.getByLabel('Order').selectOption('off');
  await dialog.getByLabel('Reason').fill('incident');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByText('Stop all capture for all agents?').waitFor();
  await dialog.getByRole('button', { name: 'Back' }).click();
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByRole('button', { name: 'Give the order' }).click();
  await page.getByRole('row', { name: /capture off.*all.*incident/ }).waitFor();
  assert.equal(JSON.parse((await call('GET', `${url}/api/v1/agents/orders?agent=agent-of-web-1`)).text).capture, 'off');
  const audit = (await call('GET', `${url}/api/v1/audit`)).text;
  assert.match(audit, /capture off/);
  assert.match(audit, /sampling/);
  // A selector that can't be read is an error of the server's, which is shown.
  await page.getByRole('button', { name: 'Control…' }).click();
  await dialog.getByLabel(/selector/).fill('{host=');
  await dialog.getByLabel('Order').selectOption('on');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByRole('button', { name: 'Give the order' }).click();
  await until(async () => assert.notEqual(await dialog.locator('.problem').innerText(), ''));
  await dialog.getByLabel(/selector/).fill('');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByRole('button', { name: 'Give the order' }).click();
  await page.getByText('Ordered: Resume capture for all agents.').waitFor();
  await page.getByRole('row', { name: /capture off/ }).waitFor({ state: 'detached' });
  await send(url);
  await context.close();
}

// Both orders end, for what comes after.
async function send(url) {
  for (const order of [{ capture: 'on' }, { sampling: {} }])
    await call('POST', `${url}/api/v1/control`, { body: JSON.stringify(order), headers: { 'Content-Type': 'application/json' } });
}

// A token that may only read sees agents and no orders.
export async function readersOrderNothing(browser, url, token) {
  const { context, page } = await fresh(browser, {}, /403/);
  await page.addInitScript((secret) => sessionStorage.setItem('assay-token', secret), token);
  await page.goto(`${url}/agents`);
  await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor();
  await page.waitForLoadState('networkidle');
  assert.equal(await page.getByRole('button', { name: /Control/ }).count(), 0);
  await context.close();
}
