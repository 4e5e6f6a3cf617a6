// SPDX-License-Identifier: Apache-2.0
// Requests: from the list of routes to what the slow ones do that others don't, in two clicks.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { send, startServer } from '../served.mjs';
import { fresh, painted, scratch, shoot } from './tools.mjs';
import { until } from '../support.mjs';

const FLEET = fileURLToPath(new URL('../../../tests/server/requests_fleet.py', import.meta.url));

// A chain of two services, in which one request of fifty is slow on each route, for a cause of its own.
export async function feedRequests(url) {
  const folder = join(scratch, 'fleet');
  const { status, stderr } = spawnSync('python3', [FLEET, folder, String(Math.floor(Date.now() / 1000) - 300)]);
  assert.equal(status, 0, String(stderr));
  await send(url, '/v1/traces', readFileSync(join(folder, 'traces.pb')), { 'Content-Type': 'application/x-protobuf' });
  for (const name of readdirSync(folder).filter((one) => one.startsWith('profile-')))
    await send(url, `/api/v1/push?service=${name.split('-')[1]}`, readFileSync(join(folder, name)));
}

export async function requests(browser) {
  const server = await startServer(join(scratch, 'requests'));
  const { url } = server;
  const { context, page } = await fresh(browser, { viewport: { width: 1440, height: 900 } }, /404|400/);
  await page.goto(`${url}/requests`);
  await page.getByText('No requests of this selection').waitFor();
  await feedRequests(url);
  await page.goto(`${url}/requests`);
  await page.getByText('4,000 requests').waitFor();
  const rows = page.getByRole('table', { name: 'Routes' }).locator('tbody tr');
  const answer = await (await fetch(`${url}/api/v1/requests?from=now-1h&to=now`)).json();
  const slowest = [...answer.routes].sort((a, b) => b.p99 - a.p99).map(({ method, route }) => `${method} ${route}`);
  assert.deepEqual((await rows.locator('th').allInnerTexts()).map((text) => text.trim()), slowest);
  await shoot(page, 'requests');

  const more = page.getByRole('table', { name: 'Functions with more time in selected requests' });
  const causes = { '/order/{id}': /^take \[lock cart_mutex\] \[lock\]\s+400\sms/, '/search': /^(read_rows \[disk\]|recv \[network\])\s+700\sms/ };
  for (const [route, cause] of Object.entries(causes)) {
    await page.goto(`${url}/requests`);
    await page.getByRole('link', { name: `GET ${route}` }).click();
    await page.getByRole('button', { name: 'Slowest 1%' }).click();
    await until(async () => assert.match((await more.locator('tbody tr').first().innerText()).trim(), cause));
    await painted(page);
  }
  await shoot(page, 'requests-slow');
  await page.getByRole('button', { name: 'CPU time' }).click();
  await page.waitForURL(/type=cpu/);
  await painted(page);

  // A part of the histogram is a band.
  await page.goto(`${url}/requests?query=${encodeURIComponent('service="shop"')}`);
  const plot = await page.locator('.durations svg').boundingBox();
  await page.mouse.move(plot.x + plot.width * 0.7, plot.y + 40);
  await page.mouse.down();
  await page.mouse.move(plot.x + plot.width, plot.y + 40, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/band=\d+us-\d+us/);
  await page.getByText(/Selected: 42 requests/).waitFor();
  await page.getByText('weak evidence').waitFor();
  // A selector that can't be read is an error, which is shown.
  await page.getByLabel('Selector of requests').fill('service=');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await context.close();
  await server.end();
}
