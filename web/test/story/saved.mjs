// SPDX-License-Identifier: Apache-2.0
// The story's shared memory: a view is named, a note is added to a range, a range is pinned and taken
// along as one file; somebody else sees all of it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { call } from '../served.mjs';
import { dragChart } from './chart.mjs';
import { fresh, painted, query, scratch, shoot } from './tools.mjs';
import { until } from '../support.mjs';

const api = async (url, path) => JSON.parse((await call('GET', `${url}/api/v1/${path}`)).text);

export async function saved(browser, { url }) {
  const { context, page } = await fresh(browser);
  const item = (name) => page.getByRole('menuitem', { name });
  await page.goto(`${url}/explore?query=${query('checkout')}&group=version`);
  await painted(page);
  await page.getByRole('button', { name: 'Save this view' }).click();
  const view = page.getByRole('dialog', { name: 'Save this view' });
  await view.getByLabel('Name').fill('checkout by version');
  await view.getByRole('button', { name: 'Save' }).click();
  await view.waitFor({ state: 'detached' });
  assert.deepEqual((await api(url, 'views')).map(({ name, address }) => [name, new URL(address, url).searchParams.get('group')]),
    [['checkout by version', 'version']]);

  await dragChart(page, 0.7, 0.8);
  await item('Add a note…').click();
  const note = page.getByRole('dialog', { name: 'Add a note' });
  await note.getByLabel('Note').fill('<b>cold</b> cache');
  await note.getByRole('button', { name: 'Save' }).click();
  await note.waitFor({ state: 'detached' });
  // The chart has it at once, as text.
  await until(async () => assert.equal(await page.locator('.chart table').getByText('<b>cold</b> cache').count(), 1));
  const [{ from, to, service }] = await api(url, 'notes');
  assert.ok(service === 'checkout' && to - from > 200 && to - from < 500, `${from} ${to}`);
  await until(async () => {
    const over = await page.locator('.chart .u-over').boundingBox({ timeout: 2000 });
    await page.mouse.move(over.x + over.width * 0.74, over.y + over.height / 2);
    await page.mouse.move(over.x + over.width * 0.75, over.y + over.height / 2);
    await page.locator('.chart-time').getByText('<b>cold</b> cache').waitFor({ timeout: 2000 });
  });

  await dragChart(page, 0.7, 0.8);
  await item('Pin against retention…').click();
  const pin = page.getByRole('dialog', { name: 'Pin this range' });
  await pin.getByLabel('Reason').fill('incident 12');
  await pin.getByLabel('Keep for days').fill('30');
  await pin.getByRole('button', { name: 'Pin', exact: true }).click();
  await pin.waitFor({ state: 'detached' });
  const { pins: [kept] } = await api(url, 'pins');
  assert.equal(kept.reason, 'incident 12');
  assert.ok(Math.abs(kept.expires - Date.now() / 1000 - 30 * 86400) < 600);

  await bundle(page, url);

  // Somebody else.
  const other = await fresh(browser);
  await other.page.goto(`${url}/saved`);
  await other.page.getByRole('row', { name: /incident 12.*expires/ }).waitFor();
  await other.page.getByRole('row', { name: /cold.*checkout/ }).waitFor();
  await shoot(other.page, 'saved');
  await other.page.getByRole('link', { name: 'checkout by version' }).click();
  await painted(other.page);
  assert.equal(new URL(other.page.url()).searchParams.get('group'), 'version');
  await other.page.goBack();
  for (const name of ['checkout by version', '<b>cold</b> cache', 'incident 12']) {
    await other.page.getByRole('button', { name: `Delete ${name}` }).click();
    await other.page.getByRole('button', { name: `Really delete ${name}` }).click();
    await other.page.getByRole('button', { name: `delete ${name}` }).waitFor({ state: 'detached' });
  }
  await other.page.getByText('Nothing saved yet').waitFor();
  assert.deepEqual([await api(url, 'views'), await api(url, 'notes'), (await api(url, 'pins')).pins], [[], [], []]);
  await other.context.close();
  await context.close();
}

// One file that is read without the server: each part is what the API answers, and profiles are profiles.
async function bundle(page, url) {
  await dragChart(page, 0.55, 0.9);
  await page.getByRole('menuitem', { name: 'Incident bundle…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Incident bundle' });
  const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'Download' }).click()]);
  assert.match(download.suggestedFilename(), /^incident-checkout-\d+\.tar\.gz$/);
  const folder = join(scratch, 'bundle');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'bundle.tar.gz');
  writeFileSync(path, readFileSync(await download.path()));
  execFileSync('tar', ['-xzf', path, '-C', folder]);
  const top = join(folder, readdirSync(folder).find((name) => name.startsWith('incident-checkout-') && !name.endsWith('gz')));
  const read = (name) => readFileSync(join(top, name));
  const json = (name) => JSON.parse(read(name).toString());
  const manifest = json('manifest.json');
  assert.ok(manifest.to > manifest.from && manifest.types.length > 0);
  // Only what this server has none of may be missing: the previous period has data here.
  assert.deepEqual(manifest.missing.filter(({ name }) => !/diff|verdicts/.test(name)), []);
  const cpu = 'process_cpu-cpu';
  const range = `query=${encodeURIComponent('cpu{service_name="checkout"}')}&from=${manifest.from}&to=${manifest.to}`;
  assert.equal(json(`${cpu}/top.json`).total, (await api(url, `top?${range}`)).total);
  assert.ok(json(`${cpu}/top.json`).quality.samples > 0);
  assert.match(read(`${cpu}/flame.html`).toString(), /escape_html/);
  const listed = execFileSync(process.env.ASSAY ?? 'assay', ['report', '--top', '10', join(top, `${cpu}/profile.pb.gz`)], { encoding: 'utf8' });
  assert.match(listed, /escape_html/);
  assert.deepEqual([...new Set(json('versions-and-labels.json').map(({ labels }) => labels.version))].sort(), ['1.9', '2.0']);
  assert.deepEqual(json('notes.json').map(({ text }) => text), ['<b>cold</b> cache']);
  assert.ok(json('server/version.json') && Array.isArray(json('server/agents.json')) && json('server/orders.json').rules);
}
