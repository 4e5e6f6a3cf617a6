// SPDX-License-Identifier: Apache-2.0
// A page that refreshes itself for a day doesn't grow: after as many refreshes its heap, nodes and
// listeners are what they were. $REFRESHES says how many; 8,640 are a day at ten seconds.

import assert from 'node:assert/strict';
import { fresh, painted, query } from './tools.mjs';

const REFRESHES = Number(process.env.REFRESHES ?? 40);
const WARM = 40; // caches and compiled code come first
const GROWTH_BYTES = 4e6; // of the heap, whatever the number of refreshes

async function measure(client) {
  await client.send('HeapProfiler.collectGarbage');
  await client.send('HeapProfiler.collectGarbage');
  const { usedSize } = await client.send('Runtime.getHeapUsage');
  const { nodes, jsEventListeners } = await client.send('Memory.getDOMCounters');
  return { bytes: usedSize, nodes, listeners: jsEventListeners };
}

export async function refreshes(browser, { url }) {
  const { context, page } = await fresh(browser);
  const client = await context.newCDPSession(page);
  // Of three days: what there is stays in the range while the clock goes on for one.
  for (const path of [`/explore?query=${query('checkout')}&group=version&refresh=10s&from=now-3d`, '/?refresh=10s&from=now-3d', '/agents?refresh=10s']) {
    // The clock of the page is ours: a refresh is due when we say so.
    await page.clock.install();
    await page.goto(url + path);
    if (path.startsWith('/explore')) await painted(page);
    const run = async (count) => {
      for (let i = 0; i < count; i++)
        await Promise.all([page.waitForResponse((response) => /\/api\/v1\/(timeseries|agents)/.test(response.url())),
          page.clock.runFor(11_000)]);
      await page.waitForLoadState('networkidle');
    };
    await run(WARM);
    const before = await measure(client);
    for (let left = REFRESHES; left > 0; left -= 500) { // told on the way, when there are many
      await run(Math.min(500, left));
      if (left > 500) console.log(`# ${path.split('?')[0]}: ${left - 500} to go, heap ${((await measure(client)).bytes / 1e6).toFixed(1)} MB`);
    }
    const after = await measure(client);
    console.log(`# ${path.split('?')[0]}: ${REFRESHES} refreshes, heap ${(before.bytes / 1e6).toFixed(1)} → ${(after.bytes / 1e6).toFixed(1)} MB, `
      + `nodes ${before.nodes} → ${after.nodes}, listeners ${before.listeners} → ${after.listeners}`);
    assert.ok(after.bytes < before.bytes + GROWTH_BYTES, `${path}: ${before.bytes} → ${after.bytes} bytes`);
    assert.ok(after.nodes >= before.nodes / 2, 'the page still shows what it showed');
    assert.ok(after.nodes <= before.nodes * 1.2 + 200, `${path}: ${before.nodes} → ${after.nodes} nodes`);
    assert.ok(after.listeners <= before.listeners * 1.2 + 50, `${path}: ${before.listeners} → ${after.listeners} listeners`);
  }
  await context.close();
}
