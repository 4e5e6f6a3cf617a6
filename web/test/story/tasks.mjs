// SPDX-License-Identifier: Apache-2.0
// Six tasks of somebody in an incident, with the clicks that each takes: counted, printed and held. A
// drag is a click.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pprof } from '../pprof.mjs';
import { send, startServer } from '../served.mjs';
import { dragChart } from './chart.mjs';
import { fresh, scratch } from './tools.mjs';
import { until } from '../support.mjs';

const PLACES = {
  main: { file: '/src/main.c', line: 10 }, parse: { file: '/src/parse.c', line: 20 },
  compress: { file: '/src/compress.c', line: 77 }, 'std::sort': { file: '/usr/include/algorithm', line: 5 }, render: { file: '/src/render.c', line: 30 },
};
const DAY = 86400;

// A shop of two pods: the second version renders slowly, and one pod compresses for some minutes. Beside
// it a cheaper service. Yesterday there was no second version.
async function incident(url) {
  const now = Math.floor(Date.now() / 10000) * 10;
  const pushes = [];
  const push = (service, version, pod, at, stacks) => pushes.push(() => send(url,
    `/api/v1/push?${new URLSearchParams({ service_name: service, version, pod, host: pod })}`, pprof(stacks, { at, places: PLACES })));
  for (const [start, today] of [[now - DAY - 3600, false], [now - 3600, true]])
    for (let minute = 0; minute < 60; minute++)
      for (const pod of ['shop-a', 'shop-b']) {
        const at = start + minute * 60;
        const second = today && minute >= 30;
        const spike = today && pod === 'shop-b' && minute >= 48 && minute < 54;
        push('shop', second ? '2.0' : '1.9', pod, at, [['main;parse', 1e9], ['main;parse;std::sort', 12e9], ['main;render', second ? 3e9 : 1e9],
          ['main;parse;compress', spike ? 9e9 : 1e8]]);
        if (pod === 'shop-a') push('mail', '3', 'mail-a', at, [['main;send_mail', 4e8]]);
      }
  while (pushes.length > 0) await Promise.all(pushes.splice(0, 8).map((one) => one()));
}

export async function tasks(browser) {
  const server = await startServer(join(scratch, 'tasks'));
  const { url } = server;
  await incident(url);
  const { context, page } = await fresh(browser, { viewport: { width: 1440, height: 900 } }, /404/);
  const params = () => new URL(page.url()).searchParams;
  const taken = [];
  async function task(name, most, body) {
    await page.goto(url);
    await page.getByRole('link', { name: 'shop', exact: true }).waitFor();
    let clicks = 0;
    await body({
      click: async (locator) => { clicks++; await locator.click(); },
      drag: async (from, to) => { clicks++; return dragChart(page, from, to); },
      free: async (locator) => locator.click(), // to get where the task begins
    });
    taken.push([name, clicks, most]);
    console.log(`# ${name}: ${clicks} ${clicks === 1 ? 'click' : 'clicks'} (at most ${most})`);
    assert.ok(clicks <= most, `${name}: ${clicks} clicks`);
  }
  const link = (name) => page.getByRole('link', { name, exact: true });
  const item = (name) => page.getByRole('menuitem', { name });
  const topRow = () => page.locator('table.table tbody tr').first().innerText();

  await task('from a spike to its source line', 3, async ({ free, drag, click }) => {
    await free(link('shop'));
    await page.locator('.chart .u-over').waitFor();
    await (await drag(0.81, 0.89)).waitFor();
    await click(item('Flame graph of this range'));
    await click(page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Source lines' }));
    await page.waitForURL(/tab=lines/);
    // Own code comes first, though a library's line costs more.
    await until(async () => assert.match(await topRow(), /compress\.c:77/));
    await page.getByRole('heading', { name: 'Libraries' }).waitFor();
    assert.match(await page.locator('table.table').nth(1).innerText(), /algorithm:5/);
  });
  await task('from a version to the cause', 3, async ({ click }) => {
    await click(link('shop'));
    await click(page.locator('#content').getByRole('link', { name: 'Compare' }));
    await click(page.getByRole('button', { name: /^Previous version/ }));
    await page.waitForURL((to) => /version="2\.0"/.test(to.searchParams.get('query')) && /version="1\.9"/.test(to.searchParams.get('base_query')));
    await until(async () => {
      const [first] = await page.locator('.flame .table-row').allInnerTexts();
      assert.match(first ?? '', /render|compress|main/);
    });
  });
  await task('the hottest function of the fleet', 1, async ({ click }) => {
    await click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Functions' }));
    const to = Math.floor(Date.now() / 1000);
    const top = await (await fetch(`${url}/api/v1/top?query=${encodeURIComponent('cpu{}')}&from=${to - 3600}&to=${to}&limit=1`)).json();
    await until(async () => assert.ok((await topRow()).startsWith(top.functions[0].function)));
    // Who uses it, and since when.
    await page.locator('table.table tbody tr').first().getByRole('link', { name: 'shop' }).waitFor();
  });
  await task('only one pod', 4, async ({ click }) => {
    await click(link('shop'));
    await click(page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'By label' }));
    await click(page.getByRole('button', { name: 'pod', exact: true }));
    await click(page.locator('.cell').getByRole('link', { name: 'shop-b' }));
    await page.waitForURL((to) => /pod="shop-b"/.test(to.searchParams.get('query')) && !to.searchParams.has('tab'));
  });
  await task('what changed since yesterday', 1, async ({ click }) => {
    await click(page.getByRole('link', { name: 'What changed since yesterday' }));
    await page.waitForURL(/since=day/);
    const answer = async () => {
      const to = Math.floor(Date.now() / 1000);
      return (await fetch(`${url}/api/v1/diff?query=${encodeURIComponent('cpu{}')}&from=${to - 3600}&to=${to}&base_from=${to - 3600 - DAY
      }&base_to=${to - DAY}&sort=flat&order=desc&limit=1`)).json();
    };
    const [most] = (await answer()).functions;
    await until(async () => assert.ok((await topRow()).startsWith(most.function), `${await topRow()}, not ${most.function}`));
  });
  await task('the most expensive service', 0, async () => {
    assert.match(await topRow(), /^shop/);
  });
  assert.equal(taken.length, 6);

  // Packages and binaries, and the previous version of a service.
  await page.goto(`${url}/functions?query=${encodeURIComponent('cpu{service_name="shop"}')}&since=version&sort=-change`);
  await page.getByText('1.9 → 2.0').waitFor();
  assert.match(await topRow(), /^(render|compress)/);
  await page.getByRole('button', { name: 'Packages' }).click();
  await page.waitForURL(/rows=package/);
  await page.getByRole('table', { name: 'Packages' }).waitFor();
  const { functions } = await (await fetch(`${url}/api/v1/top?query=${encodeURIComponent('cpu{service_name="shop"}')}&from=now-1h&to=now&rows=package`)).json();
  await until(async () => assert.deepEqual((await page.locator('table.table tbody th').allInnerTexts()).map((text) => text.trim()).sort(),
    functions.map((row) => row.function).sort()));
  assert.equal(params().get('since'), 'version');
  await page.goto(`${url}/function?query=${encodeURIComponent('cpu{}')}&name=main`);
  await page.getByRole('heading', { name: 'By service_name' }).waitFor();
  await page.getByRole('link', { name: 'mail', exact: true }).waitFor();
  await context.close();
  await server.end();
}
