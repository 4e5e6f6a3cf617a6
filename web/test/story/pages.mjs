// SPDX-License-Identifier: Apache-2.0
// The story's pages: from an empty server to services, their graphs, comparisons and functions.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pprof } from '../pprof.mjs';
import { HOSTILE_FUNCTION, HOSTILE_SERVICE, send } from '../served.mjs';
import { dragChart } from './chart.mjs';
import { fresh, outdir, painted, query, searchField, settle, shoot } from './tools.mjs';
import { until } from '../support.mjs';

export async function emptyServer(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(url);
  await page.getByRole('heading', { name: 'No profiles yet' }).waitFor();
  const text = await page.locator('main').innerText();
  assert.ok(text.includes(`sudo assay agent --server ${url}`), text);
  assert.ok(text.includes(`${url}/api/v1/push?service_name=app`), text);
  await shoot(page, 'empty');
  await page.goto(`${url}/agents`);
  await page.getByRole('heading', { name: 'No agents' }).waitFor();
  await page.goto(`${url}/recordings`);
  await page.getByText('No recordings yet').waitFor();
  await page.goto(`${url}/nonsense`);
  await page.getByText('Page not found').waitFor();
  await page.getByRole('link', { name: 'All services' }).click();
  await page.getByRole('heading', { name: 'No profiles yet' }).waitFor();
  await context.close();
}

// Views ask again by themselves where the address says so, and an address that can't be read is not
// taken for another.
export async function refresh(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(`${url}/?from=yesterday`);
  await page.getByRole('heading', { name: 'Invalid time range' }).waitFor();
  await page.getByText('Invalid time “yesterday”').waitFor();
  await page.getByRole('link', { name: 'Show the last hour' }).click();
  await page.locator('tbody tr').first().waitFor();
  const series = (request) => request.url().includes('/api/v1/timeseries');
  await page.getByRole('combobox', { name: 'Refresh automatically' }).selectOption('10s');
  await page.waitForURL(/refresh=10s/);
  await page.getByText(/^updated \d+ s ago$/).waitFor();
  await page.waitForRequest(series);
  await page.waitForRequest(series);
  // A range with an end has nothing new.
  await page.goto(`${url}/?refresh=10s&from=1700000000&to=1700003600`);
  assert.equal(await page.getByRole('combobox', { name: 'Refresh automatically' }).isDisabled(), true);
  await context.close();
}

// The fleet's functions in one click, as the server counts them.
export async function functions(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/); // nothing to compare with
  await page.goto(url);
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Functions' }).click();
  const rows = page.locator('tbody tr');
  await rows.first().waitFor();
  const to = Math.floor(Date.now() / 1000);
  const answer = await (await fetch(`${url}/api/v1/top?query=${encodeURIComponent('cpu{}')}&from=${to - 3600}&to=${to}&limit=1`)).json();
  await until(async () => assert.equal((await rows.first().locator('th').innerText()).trim(), answer.functions[0].function));
  await page.getByRole('button', { name: 'Total cores' }).click();
  await page.waitForURL(/sort=-total/);
  await page.getByLabel('Search functions').fill('escape_html');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  await shoot(page, 'functions');
  await rows.first().locator('th').getByRole('link').click();
  await page.waitForURL(/\/function\?.*escape_html/);
  await context.close();
}

export async function home(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(url);
  const rows = page.locator('tbody tr');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 4);
  assert.equal(await page.title(), 'Services · assay');
  await page.getByText('escape_html').first().waitFor();
  const cores = (await rows.locator('td.number').first().innerText()).trim();
  assert.match(cores, /^0\.\d*[1-9]\d*$/, 'a small number of cores is a number');
  assert.match(await rows.filter({ hasText: 'checkout' }).innerText(), /2\.0\s*\+1/);
  await shoot(page, 'home');

  const byName = page.getByRole('button', { name: 'Service', exact: true });
  await byName.click();
  await page.locator('th[aria-sort=ascending]:has-text("Service")').waitFor();
  assert.match(await rows.first().innerText(), /quoted|checkout/);
  const ascending = await rows.locator('th').allInnerTexts();
  await byName.click();
  await page.locator('th[aria-sort=descending]:has-text("Service")').waitFor();
  assert.deepEqual((await rows.locator('th').allInnerTexts()).reverse(), ascending);
  for (const column of ['Share', 'Top function', 'Version', 'Unnamed']) {
    await page.getByRole('button', { name: column, exact: true }).click();
    await page.locator(`th[aria-sort]:has-text("${column}")`).waitFor();
  }
  // By keyboard alone: to the search, into the list, and into the service.
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.matches('[data-search]'));
  await page.keyboard.type('check');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  assert.match(page.url(), /search=check/);
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => document.activeElement.closest('tbody'));
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/explore\?/);
  await painted(page);
  await page.goBack();
  await page.waitForURL(/search=check/);
  await context.close();
}

// Generated names are readable unless the original ones are asked for, which is part of the address.
export async function names(browser, { url }) {
  const stack = 'main.main;slices.pdqsortOrdered[go.shape.string]';
  // One for the last hour, and one to compare it with.
  for (const ago of [60, 3660])
    await send(url, '/api/v1/push?service_name=generic', pprof([[stack, 2e9]], { at: Math.floor(Date.now() / 1000) - ago }));
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('generic')}&flame=view%3Dtable`);
  const names = async () => (await page.locator('.flame .table-row').allInnerTexts()).join(' ');
  await until(async () => assert.match(await names(), /pdqsortOrdered\[\.\.\.\]/));
  const original = page.getByRole('button', { name: 'Original names' });
  assert.equal(await original.getAttribute('aria-pressed'), 'false');
  await original.click();
  await page.waitForURL(/names=original/);
  await until(async () => assert.match(await names(), /pdqsortOrdered\[go\.shape\.string\]/));
  await page.locator('#content').getByRole('link', { name: 'Compare' }).click();
  await page.waitForURL(/compare.*names=original/);
  await page.goBack();
  await original.click();
  await page.waitForURL((to) => !to.searchParams.has('names'));
  await until(async () => assert.match(await names(), /pdqsortOrdered\[\.\.\.\]/));
  await context.close();
}

export async function explore(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('checkout')}`);
  await painted(page);
  await page.locator('.chart canvas').first().waitFor();
  assert.match(await page.locator('.quality').first().innerText(), /660 samples.*2 hosts/s);
  assert.equal(await page.title(), 'checkout · Explore · assay');
  // A graph that nobody sees was drawn while the page waited, once, and nothing is left of it.
  await page.waitForFunction(() => performance.getEntriesByName('flame-warm').length === 1);
  assert.equal(await page.locator('body > [inert]').count(), 0);
  await shoot(page, 'explore');

  // A region that is dragged on the chart is the query from then on.
  await (await dragChart(page)).getByRole('menuitem', { name: 'Zoom in' }).click();
  await page.waitForURL(/from=\d/);
  const { searchParams } = new URL(page.url());
  const width = searchParams.get('to') - searchParams.get('from');
  assert.ok(width > 300 && width < 420, `a tenth of an hour, not ${width} s`);
  await painted(page);

  // Search, with the share of what is found. The graph is asked for again meanwhile, and what comes
  // takes no key away from who types.
  await page.goBack();
  await page.waitForURL((to) => !to.searchParams.has('from'));
  const field = searchField(page);
  await field.focus();
  for (const letter of 'render') {
    await page.keyboard.type(letter);
    await page.getByRole('button', { name: 'Refresh' }).evaluate((button) => button.click());
  }
  await page.waitForURL(/search(%3D|=)render/);
  await page.getByText(/3\d\.\d%/).first().waitFor();
  assert.equal(await field.inputValue(), 'render');
  await page.waitForLoadState('networkidle');
  await settle(page);
  await page.waitForFunction(() => document.activeElement.matches('.flame .search-input')); // it stays
  await shoot(page, 'search');
  await page.getByRole('button', { name: 'Regular expression' }).first().click();
  await field.fill('^(render|gc)$');
  await page.getByText('2 functions matched').waitFor();

  // Focus on a subtree, from the keyboard.
  await field.fill('');
  await page.getByText('2 functions matched').waitFor({ state: 'detached' });
  await until(async () => {
    await page.locator('.flame .graph').first().focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
    await page.waitForURL(/zoom/, { timeout: 5000 });
  });
  await page.goBack();
  await page.waitForURL((to) => !/zoom/.test(to.search));

  // A function of the table has its callers and callees beside the graph.
  // The step back may be drawn after a click that comes at once.
  await until(async () => {
    await page.getByRole('gridcell', { name: 'template_exec' }).click();
    await page.locator('.sandwich').getByText('nearest at the top').waitFor({ timeout: 5000 });
  });
  await painted(page, 3);
  await shoot(page, 'side-by-side');
  await context.close();
}

// What was too small for the first answer is there when it is asked for.
export async function others(browser, { url }) {
  const stacks = [['main;busy', 1e12]];
  for (let i = 0; i < 6000; i++) stacks.push([`main;many;leaf_${i};tail_${i}`, 1e6 + i]);
  const at = Math.floor(Date.now() / 1000) - 60;
  await send(url, '/api/v1/push?service_name=many', pprof(stacks, { at }));
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('many')}&flame=view%3Dtree`);
  const other = page.getByRole('row').filter({ hasText: /[([]other[)\]]/ }).first();
  await page.getByRole('row').filter({ hasText: 'many' }).first().click();
  await until(async () => {
    if (await other.isVisible()) return;
    await page.getByRole('row').filter({ hasText: 'many' }).first().click();
    await page.keyboard.press('ArrowRight');
    await settle(page);
    assert.ok(await other.isVisible());
  });
  const listed = await page.getByText(/too small to draw/).count();
  await other.click();
  const [response] = await Promise.all([
    page.waitForResponse((one) => /\/api\/v1\/flame.*max_nodes/.test(one.url())),
    page.keyboard.press('Enter')]);
  assert.equal(response.status(), 200);
  await page.waitForURL(/more/);
  const { flame } = await response.json();
  assert.ok(listed > 0 || flame.nodes.up.length > 8192, 'more than the first answer could hold');
  assert.ok(flame.nodes.up.length >= 12_000, `${flame.nodes.up.length} nodes`);
  await searchField(page).fill('leaf_5999');
  await page.getByText('1 function matched').waitFor();
  // The address brings the same back, in another browser, too.
  const second = await fresh(browser);
  await second.page.goto(page.url());
  await second.page.getByText('1 function matched').waitFor();
  await second.context.close();
  await context.close();
}

export async function states(browser, { url }) {
  const at = Math.floor(Date.now() / 1000) - 30;
  for (const [state, stacks] of Object.entries({
    RUNNABLE: [['main;work;compute', 30e7], ['main;work;read', 2e7]],
    SLEEPING: [['main;pool;park', 60e7], ['main;work;read', 8e7]],
  }))
    await send(url, `/api/v1/push?service_name=pool&state=${state}`, pprof(stacks, { at }));
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('pool')}`);
  await painted(page);
  await page.locator('.flame .options summary').click();
  await page.getByLabel('Colour by').selectOption('state');
  await page.getByText(/RUNNABLE 32\.0%/).waitFor();
  // Behind a dialog, the graph hears nothing: Escape closes the dialog, and t shows no table.
  await page.locator('h1, .brand').first().focus();
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keyboard' });
  await help.waitFor();
  await page.keyboard.press('t');
  await page.keyboard.press('Escape');
  await help.waitFor({ state: 'detached' });
  assert.equal(await page.locator('.flame .stage').getAttribute('data-view'), 'both');
  await page.getByText(/SLEEPING 68\.0%/).waitFor();
  await page.waitForURL(/colour(%3D|=)state/);
  await page.keyboard.press('Escape');
  await shoot(page, 'states');
  await context.close();
}

export async function compare(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/); // there was nothing the hour before
  await page.goto(`${url}/compare?query=${query('checkout')}`);
  await page.getByRole('button', { name: /previous version/i }).click();
  await page.waitForURL(/version/);
  const { searchParams } = new URL(page.url());
  assert.match(searchParams.get('query'), /version="2\.0"/);
  assert.match(searchParams.get('base_query'), /version="1\.9"/);
  await painted(page);
  await page.locator('.quality .fact-group').nth(1).waitFor();
  const rows = page.locator('.flame .table-row');
  await until(async () => assert.match(await rows.first().innerText(), /escape_html/, 'the widest growth comes first'));
  await shoot(page, 'compare');
  // The table has a column for intervals, and nothing of it is cut off.
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  await page.getByRole('columnheader', { name: 'Interval' }).waitFor();
  await until(async () => assert.match(await rows.first().innerText(), /… .*\b(grew|noise|undecided)\b/s));
  const cut = await page.locator('.flame .table-number').evaluateAll((cells) => cells
    .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent));
  assert.deepEqual(cut, [], 'numbers are cut off');
  await page.getByRole('button', { name: 'Both', exact: true }).click();
  await page.getByRole('button', { name: 'Side by side' }).click();
  await page.waitForURL(/layout=apart/);
  await painted(page, 2);
  await shoot(page, 'compare-apart');
  // The first version has none before it, and that is said.
  await page.goto(`${url}/compare?query=${query('checkout', ',version="1.9"')}`);
  await page.getByRole('button', { name: /previous version/i }).click();
  await page.getByText('No version of checkout before 1.9').waitFor();
  await context.close();
}

export async function functionPage(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  await page.goto(`${url}/function?query=${query('checkout')}&name=template_exec`);
  await page.getByRole('heading', { name: 'template_exec' }).first().waitFor();
  await page.getByRole('link', { name: 'render', exact: true }).first().waitFor();
  await page.getByRole('link', { name: 'escape_html', exact: true }).first().waitFor();
  assert.equal(await page.title(), 'template_exec · Function · assay');
  await painted(page);
  await shoot(page, 'function');
  await page.getByRole('link', { name: 'escape_html', exact: true }).first().click();
  await page.waitForURL(/name=escape_html/);
  // Where a selection has nothing, that is said, and nothing of another one stays.
  await page.getByRole('link', { name: 'The whole flame graph' }).click();
  await painted(page);
  const service = page.getByRole('combobox', { name: 'Service' });
  await service.fill('nobody');
  await service.press('Enter');
  await page.getByText('No data for this selection in this range').waitFor();
  assert.equal(await page.locator('canvas').count(), 0, 'the picture of another service stays');
  await context.close();
}

// What one person sees, another sees who gets the address.
export async function share(browser, { url }) {
  const first = await fresh(browser);
  await first.page.goto(`${url}/explore?query=${query('checkout')}&from=now-30m`);
  await painted(first.page);
  await searchField(first.page).fill('db_query');
  await first.page.waitForURL(/db_query/);
  const address = first.page.url();
  await first.context.close();
  const second = await fresh(browser);
  await second.page.goto(address);
  await painted(second.page);
  await until(async () => assert.equal(await searchField(second.page).inputValue(), 'db_query'));
  assert.equal(await second.page.getByRole('combobox', { name: 'Service' }).inputValue(), 'checkout');
  assert.deepEqual(await second.context.cookies(), []);
  await second.context.close();
}

export async function hostileNames(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query(HOSTILE_SERVICE)}`);
  await painted(page);
  await page.goto(`${url}/function?query=${query('search')}&name=${encodeURIComponent(HOSTILE_FUNCTION)}`);
  await page.getByRole('heading', { name: HOSTILE_FUNCTION }).first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('main script, main img').count(), 0);
  await context.close();
}

// Even where markup got in, nothing in it would run.
export async function policy(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /Content Security Policy|Refused|eval/);
  await page.goto(url);
  await page.getByText('checkout').first().waitFor();
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.inline = 1';
    const box = document.createElement('div');
    box.innerHTML = '<img src="x:" onerror="window.handler = 1"><b style="color: red">x</b>';
    document.body.append(script, box);
    const colour = getComputedStyle(box.querySelector('b')).color;
    return { inline: window.inline, handler: window.handler, red: colour === 'rgb(255, 0, 0)' };
  });
  assert.deepEqual(ran, { inline: undefined, handler: undefined, red: false });
  await assert.rejects(page.addScriptTag({ content: 'eval("window.evaluated = 1")' }));
  assert.equal(await page.evaluate(() => window.evaluated), undefined);
  await context.close();
}

export async function everywhere(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(url);
  await page.getByText('checkout').first().waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await shoot(page, 'keys');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'detached' });
  await until(async () => { // the second key within a second of the first
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    await page.waitForURL(/\/files$/, { timeout: 5000 });
  });
  // The address changes first, the page and its focus with the next frame.
  await page.waitForFunction(() => document.activeElement.id === 'content');
  await page.keyboard.press('T');
  await page.getByRole('button', { name: 'UTC' }).waitFor();
  await context.close();
}

const PAGES = (checkout) => ['/', `/explore?query=${checkout}`, `/compare?query=${checkout}`,
  `/function?query=${checkout}&name=render`, '/alerts', '/explain', '/explain?service=checkout', '/findings', '/triage', '/files', '/recordings', '/agents', '/symbols', '/saved',
  '/functions', '/functions?sort=-change'];

// On a phone everything can be read without moving sideways.
export async function phone(browser, { url }) {
  const { context, page } = await fresh(browser,
    { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true }, /404/);
  for (const path of PAGES(query('checkout'))) {
    await page.goto(url + path);
    await page.locator(/explore|function\?/.test(path) ? '.flame canvas' : 'main .page').first().waitFor();
    await page.waitForLoadState('networkidle');
    await settle(page);
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth,
      document.getElementById('content').scrollWidth) - innerWidth);
    assert.ok(wide <= 0, `${path} is ${wide} pixels too wide`);
    await page.screenshot({ path: join(outdir, `phone${path.split('?')[0].replaceAll('/', '-')}.png`) });
  }
  await context.close();
}

// Notes in the page what the Tab key reaches, by what name, and whether that is to be seen.
function watchFocus() {
  const usable = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
    .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }));
  window.unreached = new Set(usable);
  window.wrong = [];
  document.activeElement?.blur();
  document.addEventListener('focusin', ({ target }) => {
    const style = getComputedStyle(target);
    const around = target.closest('.search') ? getComputedStyle(target.closest('.search')) : style;
    const seen = (style.outlineStyle !== 'none' && style.outlineWidth !== '0px') || around.boxShadow !== 'none';
    const name = target.getAttribute('aria-label') || target.labels?.[0]?.textContent || target.textContent.trim();
    if (!seen || !name) window.wrong.push(`${seen ? 'no name' : 'no focus to be seen'}: ${target.outerHTML.slice(0, 120)}`);
    window.unreached.delete(target);
  });
  return usable.length;
}

// The Tab key reaches everything that can be used, each with a name and a visible focus.
export async function keyboard(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/);
  for (const path of PAGES(query('checkout'))) {
    await page.goto(url + path);
    await page.locator('main .page').waitFor();
    await page.waitForLoadState('networkidle');
    await settle(page);
    const count = await page.evaluate(watchFocus);
    for (let i = 0; i < count + 8; i++) await page.keyboard.press('Tab');
    const left = await page.evaluate(() => ({
      wrong: window.wrong, unreached: [...window.unreached].filter((one) => one.isConnected).map((one) => one.outerHTML.slice(0, 120)) }));
    assert.deepEqual(left, { wrong: [], unreached: [] }, path);
  }
  await context.close();
}
