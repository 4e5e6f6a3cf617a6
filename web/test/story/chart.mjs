// SPDX-License-Identifier: Apache-2.0
// The story's charts: a range that is dragged, and a name of the legend, offer what can be done with
// them; ranges on the chart follow the pointer and the keys.

import assert from 'node:assert/strict';
import { fresh, painted, query, shoot } from './tools.mjs';
import { until } from '../support.mjs';

// Over this part of the chart; what that offers is open then.
export async function dragChart(page, from = 0.8, to = 0.9) {
  const menu = page.getByRole('menu');
  await until(async () => {
    const box = await page.locator('.chart .u-over').boundingBox();
    await page.mouse.move(box.x + box.width * from, box.y + box.height * 0.7);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + box.height * 0.7, { steps: 5 });
    await page.mouse.up();
    await menu.waitFor({ timeout: 5000 }); // the chart may be drawn anew under the pointer
  });
  return menu;
}

const params = (page) => new URL(page.url()).searchParams;

export async function charts(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('checkout')}&group=version`);
  await painted(page);
  const entry = (version) => page.getByRole('button', { name: new RegExp(`^${version.replace('.', '\\.')} `) });
  const item = (name) => page.getByRole('menuitem', { name });
  // The means of what is shown, and that nothing moves under the pointer.
  const legend = await page.locator('.chart-legend').boundingBox();
  const plot = await page.locator('.chart .u-over').boundingBox();
  await page.mouse.move(plot.x + plot.width * 0.7, plot.y + 40);
  await page.locator('.chart-time').getByText(/\d\d:\d\d:\d\d/).waitFor();
  assert.deepEqual(await page.locator('.chart-legend').boundingBox(), legend);
  assert.deepEqual(await page.locator('.chart .u-over').boundingBox(), plot);

  await entry('2.0').click();
  await shoot(page, 'legend');
  await page.keyboard.press('Escape');
  await page.getByRole('menu').waitFor({ state: 'hidden' });
  await until(async () => assert.match(await page.evaluate(() => document.activeElement.textContent), /^2\.0/));
  await entry('2.0').click();
  await item('Exclude this version').click();
  await page.waitForURL((to) => /version!="2\.0"/.test(to.searchParams.get('query')));
  await page.locator('.chip', { hasText: 'version != 2.0' }).waitFor();
  await page.goBack();
  await entry('2.0').click();
  await item('Only this version').click();
  await page.waitForURL((to) => /version="2\.0"/.test(to.searchParams.get('query')));
  await page.goBack();
  await entry('2.0').click();
  await item('Compare with all others').click();
  await page.waitForURL(/\/compare\?/);
  assert.match(params(page).get('query'), /version="2\.0"/);
  assert.match(params(page).get('base_query'), /version!="2\.0"/);
  assert.equal(params(page).get('normalize'), 'total');
  await page.goBack();
  await painted(page);

  // What is below the chart is of the range that was chosen on it, and the chart stays.
  await (await dragChart(page)).waitFor();
  await shoot(page, 'drag');
  await item('Flame graph of this range').click();
  await page.waitForURL(/part=\d+-\d+/);
  const chosen = () => params(page).get('part').split('-').map(Number);
  const [from, to] = chosen();
  assert.ok(to - from > 300 && to - from < 420, `a tenth of an hour, not ${to - from} s`);
  assert.equal(params(page).get('from'), null);
  await until(async () => {
    const shown = await page.locator('.quality').first().innerText();
    assert.ok(Number(/(\d+) samples/.exec(shown)[1]) < 330, shown);
  });
  // Its ends move with the keys and with the pointer.
  const end = page.getByRole('slider', { name: 'Shown below: end' });
  await end.focus();
  await page.keyboard.press('ArrowLeft');
  await page.waitForURL((now) => now.searchParams.get('part').endsWith(`-${to - 10}`));
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')),
    'Shown below: end'));
  const grip = await page.getByRole('slider', { name: 'Shown below: move' }).boundingBox();
  await page.mouse.move(grip.x + 10, grip.y + 8);
  await page.mouse.down();
  await page.mouse.move(grip.x - 190, grip.y + 8, { steps: 4 });
  await page.mouse.up();
  await until(async () => {
    const [start, stop] = chosen();
    assert.ok(start < from - 300 && stop - start === to - 10 - from, `${start} ${stop}`);
  });
  await page.getByRole('button', { name: 'Close Shown below' }).click();
  await page.waitForURL((now) => !now.searchParams.has('part'));

  await dragChart(page);
  await item('Compare with the previous period').click();
  await page.waitForURL(/\/compare\?/);
  assert.equal(Number(params(page).get('base_to')) - Number(params(page).get('from')), 0);
  await context.close();
}

// Who: a chart for each value of a label, with the numbers that the API has.
export async function labelGrid(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(`${url}/explore?query=${encodeURIComponent('cpu{}')}`);
  await page.getByRole('link', { name: 'By label' }).click();
  const cells = page.locator('.cell');
  await until(async () => assert.equal(await cells.count(), 4));
  // Long ones are cut in their middle where they are seen, and whole where they are named.
  const names = () => cells.locator('.cell-name [title]').evaluateAll((list) => list.map(({ title }) => title));
  const to = Math.floor(Date.now() / 1000);
  const { series } = await (await fetch(`${url}/api/v1/timeseries?query=${encodeURIComponent('cpu{}')
  }&from=${to - 3600}&to=${to}&step=3600&group_by=service_name`)).json();
  const largest = series.map(({ labels, points }) => [labels.service_name, points.reduce((sum, [, value]) => sum + value, 0)])
    .sort(([, a], [, b]) => b - a).map(([name]) => name);
  assert.deepEqual(await names(), largest);
  // The same mean in the legend of the chart above.
  const mean = (await cells.first().locator('b').innerText()).trim();
  await page.getByRole('button', { name: new RegExp(`^${largest[0]} ${mean.replace('.', '\\.')}$`) }).waitFor();
  await page.getByRole('button', { name: 'version', exact: true }).click();
  await until(async () => assert.deepEqual((await names()).sort(), ['1.9', '2.0']));
  await page.getByRole('group', { name: 'Sorted by' }).getByRole('button', { name: 'Change' }).click();
  await page.waitForURL(/sort=change/);
  await shoot(page, 'by-label');
  await page.getByRole('button', { name: 'More about 1.9' }).click();
  await page.getByRole('menuitem', { name: 'Exclude this version' }).waitFor();
  await page.keyboard.press('Escape');
  // One click from the cell to its graph.
  await cells.getByRole('link', { name: '2.0' }).click();
  await page.waitForURL((now) => /version="2\.0"/.test(now.searchParams.get('query')) && !now.searchParams.has('tab'));
  await painted(page);
  await context.close();
}

// How much of a page of 1440x900 is what somebody came to see: charts, graphs and tables.
const CONTENT = '.chart-plot, .flame .stage, .by-label, table.table';

export async function roomy(browser, { url }) {
  const { context, page } = await fresh(browser, { viewport: { width: 1440, height: 900 } }, /404/);
  const side = (ago) => Math.floor(Date.now() / 1000) - ago;
  const pages = {
    explore: `/explore?query=${query('checkout')}`,
    compare: `/compare?query=${query('checkout')}&from=${side(600)}&to=${side(0)}&base_from=${side(1500)}&base_to=${side(900)}`,
    functions: '/functions',
  };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(url + path);
    if (name === 'functions') await page.locator('table.table tbody tr').nth(20).waitFor();
    else await painted(page);
    if (name !== 'functions') await page.locator('.chart .u-over').waitFor();
    const share = await page.evaluate((content) => {
      const parts = [...document.querySelectorAll(content)].map((one) => one.getBoundingClientRect());
      let seen = 0;
      for (let y = 0; y < innerHeight; y++) if (parts.some(({ top, bottom }) => y >= top && y < bottom)) seen++;
      return seen / innerHeight;
    }, CONTENT);
    console.log(`# ${name}: ${(100 * share).toFixed(0)}% of the height is content (at least 60%)`);
    assert.ok(share >= 0.6, `${name}: ${share}`);
    await shoot(page, `wide-${name}`);
  }
  await context.close();
}

// Two ranges on one chart: what is dragged is compared.
export async function compareRanges(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  const now = Math.floor(Date.now() / 1000);
  await page.goto(`${url}/compare?query=${query('checkout')}&from=${now - 600}&to=${now}&base_from=${now - 1500}&base_to=${now - 900}`);
  await painted(page);
  await page.getByRole('slider', { name: 'Before: move' }).waitFor();
  const samples = async () => {
    const shown = await page.locator('.quality').innerText();
    return [...shown.matchAll(/([\d,]+) samples/g)].map(([, count]) => Number(count.replace(',', '')));
  };
  await until(async () => assert.equal((await samples()).length, 2));
  const [before] = await samples();
  const end = page.getByRole('slider', { name: 'Before: start' });
  const box = await end.boundingBox();
  await page.mouse.move(box.x + 4, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + 154, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL((to) => Number(to.searchParams.get('base_from')) > now - 1450);
  assert.equal(params(page).get('base_to'), String(now - 900));
  await until(async () => assert.ok((await samples())[0] < before));
  // A range that is dragged on the chart can become either side.
  await dragChart(page, 0.45, 0.6);
  await page.getByRole('menuitem', { name: 'Use as Before' }).click();
  await page.waitForURL((to) => Number(to.searchParams.get('base_to')) > now - 890);
  // The graphs of both sides are looked at together.
  await page.getByRole('button', { name: 'Side by side' }).click();
  await painted(page, 2);
  await page.locator('.half').first().locator('input[type=search]').fill('render');
  await until(async () => assert.equal(await page.locator('.half').nth(1).locator('input[type=search]').inputValue(), 'render'));
  // Sides of different selections have a line in the chart each.
  await page.getByRole('button', { name: 'Two selections' }).click();
  await page.getByRole('group', { name: 'Before' }).getByRole('combobox', { name: 'Service' }).fill('search');
  await page.keyboard.press('Enter');
  await page.waitForURL((to) => /"search"/.test(to.searchParams.get('base_query')));
  await page.locator('.chart-legend').getByText('Before').waitFor();
  await context.close();
}
