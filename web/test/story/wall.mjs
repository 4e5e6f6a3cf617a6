// SPDX-License-Identifier: Apache-2.0
// Wall-clock time on the server's page: where the time of threads went, and one state by itself.

import assert from 'node:assert/strict';
import { pprof } from '../pprof.mjs';
import { send } from '../served.mjs';
import { fresh, painted, shoot } from './tools.mjs';
import { until } from '../support.mjs';

const QUERY = encodeURIComponent('wall{service_name="convoy"}');

export async function feed(url) {
  const at = Math.floor(Date.now() / 1000) - 30;
  const lock = (waiter, holder, ns) => [`main;${waiter};pthread_mutex_lock;[lock queue];[lock holder];main;${holder}`, ns];
  for (const [state, stacks] of Object.entries({
    running: [['main;take;compute', 1e9]],
    lock: [lock('take', 'flush', 4e9), lock('put', 'flush', 2e9), ['main;pool;pthread_cond_wait', 3e9]],
    network: [['main;serve;recv', 5e8]],
  }))
    await send(url, `/api/v1/push?service_name=convoy&state=${state}${state === 'running' ? '&thread=taker' : ''}`, pprof(stacks, { at, kind: 'wall' }));
}

export async function triage(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(`${url}/triage?query=${encodeURIComponent('wall{service_name="nothing"}')}`);
  await page.locator('main .notice').waitFor();
  await feed(url);
  await page.goto(`${url}/triage?query=${QUERY}`);
  await page.getByText(/Mostly waiting for locks: 80\.0% of\s+the 7\.50\ss/).waitFor();
  const locks = page.locator('section', { has: page.getByRole('heading', { name: 'Locks', exact: true }) });
  const pairs = (await locks.locator('tbody tr').allInnerTexts()).map((text) => text.split(/\s+/).slice(0, 3));
  assert.deepEqual(pairs, [['take', 'queue', 'flush'], ['put', 'queue', 'flush']]);
  assert.match(await page.getByRole('row', { name: /^Idle/ }).innerText(), /3\ss/);
  await painted(page);
  await page.getByText(/^lock 85\.7%/).waitFor();
  await shoot(page, 'triage');
  // One state by itself, in the graph that has all of them.
  await page.getByRole('button', { name: /^running/ }).click();
  await page.waitForURL(/state(%3D|=)running/);
  await page.getByRole('button', { name: 'Undo: state: running' }).waitFor();
  assert.deepEqual(await page.locator('.flame .legend-state').allInnerTexts(), ['running 9.52%']);
  await until(async () => assert.equal(await page.locator('.flame .table-row').count(), 3)); // main, take, compute
  await page.getByRole('button', { name: 'Undo: state: running' }).click();
  await page.getByRole('button', { name: /^lock 85\.7%/ }).waitFor();
  // Each thread by itself, with its states.
  await page.getByLabel('View options').click();
  await page.getByLabel('Split by').selectOption('thread');
  await page.waitForURL(/split(%3D|=)thread/);
  await page.getByRole('button', { name: 'Undo: split by thread' }).waitFor();
  await page.locator('.flame .table-sort', { hasText: 'Total' }).click();
  await page.locator('.flame .table-row', { hasText: '[thread taker]' }).waitFor();
  const split = await (await fetch(`${url}/api/v1/flame?query=${QUERY}&from=now-1h&to=now&split=thread`)).json();
  assert.ok(split.flame.strings.includes('[thread taker]') && split.flame.strings.includes('[no thread]'));
  assert.match(await page.locator('.flame .table-row', { hasText: '[no thread]' }).innerText(), /9\.50\ss/);
  await shoot(page, 'triage-threads');
  await page.getByRole('button', { name: 'Undo: split by thread' }).click();
  await page.locator('.flame .table-row', { hasText: '[thread taker]' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Waiting for locks' }).click();
  await page.waitForURL(/\/explore\?.*state/);
  await painted(page);
  await context.close();
}
