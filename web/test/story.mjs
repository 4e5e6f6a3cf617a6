// SPDX-License-Identifier: Apache-2.0
// The server's page in a real browser, as a person uses it, against a real server:
//   ASSAY=build/assay node test/story.mjs [--outdir DIR]
// Screenshots of every page, light and dark, go to DIR.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pprof } from './pprof.mjs';
import {
  ASSAY, demo, endAll, HOSTILE_FUNCTION, HOSTILE_SERVICE, PROFILES, send, start, startServer,
} from './served.mjs';
import { startBrowser } from './support.mjs';

const { values } = parseArgs({ options: { outdir: { type: 'string' }, only: { type: 'string' } } });
const scratch = mkdtempSync(join(tmpdir(), 'assay-story-'));
const outdir = values.outdir ?? join(scratch, 'shots');
mkdirSync(outdir, { recursive: true });
const PATIENCE_MS = 30_000;
let failures = 0;

const started = Date.now();
async function check(name, body) {
  if (values.only && !name.includes(values.only)) return;
  const began = Date.now();
  try {
    await body();
    console.log(`ok - ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    failures++;
    console.log(`not ok - ${name}`);
    console.log(String(error.stack ?? error).replace(/^/gm, '  # '));
  }
}

const complaints = [];

// A fresh browser: no storage, no cookies. What a page complains about is kept; `expected` says what
// it is meant to.
async function fresh(browser, options = {}, expected = null) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce', ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on('console', (message) => {
    // Reading the canvas back, as only this test does, earns a hint about speed.
    if (['error', 'warning'].includes(message.type()) && !/readback/.test(message.text())
      && !expected?.test(message.text()))
      complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  page.on('dialog', async (dialog) => {
    complaints.push(`a dialog opened: ${dialog.message()}`);
    await dialog.dismiss();
  });
  return { context, page };
}

// Both themes of what is on the page now.
async function shoot(page, name) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await settle(page);
    await page.screenshot({ path: join(outdir, `${name}-${scheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

const settle = (page) => page.evaluate(() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done))));

// A flame graph is there when it has painted.
const painted = (page, count = 1) => page.waitForFunction((wanted) =>
  [...document.querySelectorAll('.flame canvas')].filter((canvas) => {
    if (canvas.width === 0 || canvas.height === 0 || canvas.offsetParent === null) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value) => value !== 0);
  }).length >= wanted, count);

const query = (service) => encodeURIComponent(`cpu{service_name="${service}"}`);

// ---- the story ----

async function emptyServer(browser, { url }) {
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
  await page.getByText('Nothing was recorded yet').waitFor();
  await page.goto(`${url}/nonsense`);
  await context.close();
}

async function home(browser, { url }) {
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

  await page.getByRole('button', { name: 'Service', exact: true }).click();
  assert.match(await rows.first().innerText(), /quoted|checkout/);
  const ascending = await rows.locator('th').allInnerTexts();
  await page.getByRole('button', { name: 'Service', exact: true }).click();
  assert.deepEqual((await rows.locator('th').allInnerTexts()).reverse(), ascending);
  for (const column of ['Share', 'Top function', 'Version', 'Unnamed']) {
    await page.getByRole('button', { name: column, exact: true }).click();
    await page.locator(`th[aria-sort]:has-text("${column}")`).waitFor();
  }
  // By keyboard alone: to the search, into the list, and into the service.
  await page.keyboard.press('/');
  await page.keyboard.type('check');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  assert.match(page.url(), /search=check/);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/explore\?/);
  await painted(page);
  await page.goBack();
  await page.waitForURL(/search=check/);
  await context.close();
}

async function explore(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${query('checkout')}`);
  await painted(page);
  await page.locator('.chart canvas').first().waitFor();
  assert.match(await page.locator('.quality').first().innerText(), /660 samples.*2 hosts/s);
  assert.equal(await page.title(), 'checkout · Explore · assay');
  await shoot(page, 'explore');

  // A region that is dragged on the chart is the query from then on.
  await page.locator('.chart .u-over').waitFor();
  const box = await page.locator('.chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2, { steps: 5 });
  const [response] = await Promise.all([
    page.waitForResponse((one) => /\/api\/v1\/flame/.test(one.url())), page.mouse.up()]);
  await page.waitForURL(/from=\d+/);
  const params = new URL(response.url()).searchParams;
  const width = Number(params.get('to')) - Number(params.get('from'));
  assert.ok(width > 300 && width < 420, `a tenth of an hour, not ${width} s`);
  await painted(page);
  await page.goBack();
  await page.waitForURL((to) => !to.searchParams.has('from'));

  // Search, with the share of what is found.
  await painted(page);
  const field = page.locator('.flame input[type=search]').first();
  await field.fill('render');
  await page.waitForURL(/render/);
  await page.getByText(/3\d\.\d%/).first().waitFor();
  await shoot(page, 'search');

  // Focus on a subtree, from the keyboard.
  await field.fill('');
  await page.locator('.flame .graph').first().focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
  await page.waitForURL(/zoom/);
  await page.goBack();
  await page.waitForURL((to) => !/zoom/.test(to.search));
  await context.close();
}

async function compare(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /404/); // there was nothing the hour before
  await page.goto(`${url}/compare?query=${query('checkout')}`);
  await page.getByRole('button', { name: /previous version/ }).click();
  await page.waitForURL(/version/);
  const { searchParams } = new URL(page.url());
  assert.match(searchParams.get('query'), /version="2\.0"/);
  assert.match(searchParams.get('base_query'), /version="1\.9"/);
  await painted(page);
  await page.locator('.quality').nth(1).waitFor();
  await shoot(page, 'compare');
  await context.close();
}

async function functionPage(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/function?query=${query('checkout')}&name=template_exec`);
  await page.getByRole('heading', { name: 'template_exec' }).first().waitFor();
  await page.getByRole('link', { name: 'render', exact: true }).first().waitFor();
  await page.getByRole('link', { name: 'escape_html', exact: true }).first().waitFor();
  assert.equal(await page.title(), 'template_exec · Function · assay');
  await painted(page);
  await shoot(page, 'function');
  await page.getByRole('link', { name: 'escape_html', exact: true }).first().click();
  await page.waitForURL(/name=escape_html/);
  await context.close();
}

// What one person sees, another sees who gets the address.
async function share(browser, { url }) {
  const first = await fresh(browser);
  await first.page.goto(`${url}/explore?query=${query('checkout')}&from=now-30m`);
  await painted(first.page);
  await first.page.locator('.flame input[type=search]').first().fill('db_query');
  await first.page.waitForURL(/db_query/);
  const address = first.page.url();
  await first.context.close();
  const second = await fresh(browser);
  await second.page.goto(address);
  await painted(second.page);
  assert.equal(await second.page.locator('.flame input[type=search]').first().inputValue(), 'db_query');
  assert.equal(await second.page.getByRole('combobox', { name: 'Service' }).inputValue(), 'checkout');
  assert.deepEqual(await second.context.cookies(), []);
  await second.context.close();
}

async function hostileNames(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/explore?query=${encodeURIComponent(`cpu{service_name="${HOSTILE_SERVICE.replaceAll('"', '\\"')}"}`)}`);
  await painted(page);
  await page.goto(`${url}/function?query=${query('search')}&name=${encodeURIComponent(HOSTILE_FUNCTION)}`);
  await page.getByRole('heading', { name: HOSTILE_FUNCTION }).first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('main script, main img').count(), 0);
  await context.close();
}

// Even where markup got in, nothing in it would run.
async function policy(browser, { url }) {
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

async function tokens(browser) {
  const data = join(scratch, 'guarded');
  const file = join(scratch, 'tokens');
  const make = (name, ...more) => execFileSync(ASSAY,
    ['token', 'create', name, '--file', file, ...more], { encoding: 'utf8' })
    .match(/assay_\S+/)[0];
  const sender = make('sender', '--roles', 'ingest');
  const reader = make('reader', '--roles', 'read');
  const server = await startServer(data, '127.0.0.1:0', ['--tokens', file]);
  await demo(server.url, { Authorization: `Bearer ${sender}` });
  const { context, page } = await fresh(browser, {}, /40[13]/);
  await page.goto(`${server.url}/explore?query=${query('checkout')}`);
  const enter = async (token) => {
    await page.getByLabel('Token', { exact: true }).fill(token);
    await page.getByRole('button', { name: 'Log in' }).click();
  };
  await page.getByLabel('Token', { exact: true }).waitFor();
  assert.equal(await page.title(), 'Log in · assay');
  await enter('assay_wrong_token');
  await page.getByText('does not know this token').waitFor();
  await shoot(page, 'login');
  await enter(sender);
  await page.getByText(/is for ingest, and this needs one for read/).waitFor();
  await enter(reader);
  await painted(page);
  assert.match(page.url(), /checkout/, 'the address is what it was');
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.evaluate(() => localStorage.getItem('assay-token')), null);
  // A token that is revoked while the page is open.
  execFileSync(ASSAY, ['token', 'revoke', 'reader', '--file', file]);
  await server.end();
  const again = await startServer(data, server.url.replace('http://', ''), ['--tokens', file]);
  await page.reload();
  await page.getByText('not known here').waitFor();
  await again.end();
  await context.close();
}

async function killed(browser) {
  const data = join(scratch, 'killed');
  const server = await startServer(data);
  await demo(server.url);
  const { context, page } = await fresh(browser, {}, /ERR_CONNECTION|Failed to load/);
  await page.goto(`${server.url}/explore?query=${query('checkout')}`);
  await painted(page);
  await server.end('SIGKILL');
  await page.getByRole('button', { name: 'Ask again' }).click();
  await page.getByRole('alert').getByText('does not answer').waitFor();
  await painted(page); // what was there still is
  await shoot(page, 'killed');
  const again = await startServer(data, server.url.replace('http://', ''));
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await again.end();
  await context.close();
}

// As the browser does when somebody lets files go over the page.
async function drop(page, files) {
  const transfer = await page.evaluateHandle((list) => {
    const out = new DataTransfer();
    for (const [name, bytes] of list) out.items.add(new File([new Uint8Array(bytes)], name));
    return out;
  }, files.map(([name, bytes]) => [name, [...bytes]]));
  await page.dispatchEvent('main', 'dragover', { dataTransfer: transfer });
  await page.getByText('Drop to open').waitFor();
  await page.dispatchEvent('main', 'drop', { dataTransfer: transfer });
}

async function files(browser, { url }) {
  const { context, page } = await fresh(browser, {}, /415/);
  await page.goto(`${url}/files`);
  await page.getByRole('heading', { name: 'Drop a profile here' }).waitFor();
  await shoot(page, 'drop');
  await drop(page, [['cpu <b>.pb', PROFILES.base]]);
  await painted(page);
  assert.match(await page.locator('.quality').innerText(), /pprof/);
  await page.goto(url); // dropping works on any page
  await page.getByText('checkout').first().waitFor();
  await drop(page, [['base.pb', PROFILES.base], ['new.pb', PROFILES.new]]);
  await painted(page);
  await page.locator('.quality').nth(1).waitFor();
  assert.match(await page.locator('.quality').allInnerTexts().then((all) => all.join()), /Before: base\.pb.*After: new\.pb/s);
  await shoot(page, 'files');
  await page.getByLabel('Compared with').selectOption('stored');
  await page.waitForURL(/base_query/);
  await page.getByRole('group', { name: 'Before' }).waitFor();
  await painted(page);
  // Stored only when asked.
  const count = async () => (await (await fetch(`${url}/api/v1/label/service_name/values?from=1980-01-01`)).json()).length;
  assert.equal(await count(), 4);
  await page.getByRole('button', { name: 'Store…' }).click();
  await page.getByRole('dialog').getByLabel('Service').fill('from-a-file');
  await page.getByRole('button', { name: 'Store', exact: true }).click();
  await page.getByText(/^Stored:/).waitFor();
  assert.equal(await count(), 5);
  await page.getByRole('button', { name: 'Close' }).last().click();
  // What is no profile is said to be none.
  await drop(page, [['picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3])]]);
  await page.getByRole('alert').first().waitFor();
  await context.close();
}

async function view(browser) {
  const paths = ['base', 'new'].map((name) => join(scratch, `${name}.pb`));
  writeFileSync(paths[0], PROFILES.base);
  writeFileSync(paths[1], PROFILES.new);
  const served = await start(['view', ...paths], /^(http:\S+)$/, 'stdout');
  const { context, page } = await fresh(browser, {}, /401/);
  await page.goto(served.url);
  await painted(page);
  assert.match((await page.locator('.quality').allInnerTexts()).join(), /Before: base\.pb.*After: new\.pb/s);
  assert.equal(await page.locator('.menu').count(), 0, 'there is only this page');
  await page.getByLabel('Compared with').selectOption('');
  await painted(page);
  await drop(page, [['dropped.pb', PROFILES.new]]);
  await page.getByRole('heading', { name: 'dropped.pb' }).waitFor();
  await painted(page);
  await page.goto(served.url.replace(/[^/]+$/, '0'.repeat(32)));
  await page.getByText('whole address').waitFor();
  await context.close();
  await served.end();
}

// An agent as it shows itself to the server.
const reportOf = (recordings) => JSON.stringify({
  agent: 'agent-1', host: 'web-1', version: '0.1.0', labels: { region: 'eu' },
  sent_at: Date.now() / 1000,
  status: { means: 'bpf', rate: 19, samples: 51234, cpu_share: 0.004, resident_bytes: 31e6, losses: { copies: 3 } },
  recordings,
});

async function recordings(browser, { url }) {
  await send(url, '/api/v1/agents/report', reportOf([]));
  const { context, page } = await fresh(browser);
  await page.goto(`${url}/agents`);
  await page.getByRole('row', { name: /web-1/ }).waitFor();
  assert.match(await page.getByRole('row', { name: /web-1/ }).innerText(), /19 Hz.*0\.40%/s);
  await shoot(page, 'agents');
  await page.goto(`${url}/recordings`);
  await page.getByRole('button', { name: 'Record…' }).click();
  await page.getByRole('combobox', { name: 'Service' }).fill('checkout');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Record', exact: true }).click();
  await page.waitForURL(/id=/);
  await page.getByText('It is pending').waitFor();
  const id = new URL(page.url()).searchParams.get('id');
  await send(url, '/api/v1/agents/report', reportOf([{ id, state: 'running', samples: 12 }]));
  await page.getByText('It is running').waitFor();
  await shoot(page, 'recording');
  await send(url, `/api/v1/push?service_name=checkout&recording=${id}&host=web-1`, PROFILES.new);
  await send(url, '/api/v1/agents/report', reportOf([{ id, state: 'done', samples: 990 }]));
  await page.getByText('It is over: done').waitFor();
  await page.getByRole('link', { name: 'Open' }).click();
  await page.waitForURL(/\/explore/);
  await painted(page);
  await page.goto(`${url}/recordings`);
  await page.getByRole('row', { name: /checkout/ }).waitFor();
  await shoot(page, 'recordings');
  await context.close();
}

async function symbols(browser, { url }) {
  const { context, page } = await fresh(browser);
  await send(url, '/api/v1/maps?service=checkout&version=1.4&name=app.js',
    '{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}');
  await page.goto(`${url}/symbols`);
  await page.getByRole('row', { name: /app\.js/ }).waitFor();
  await page.getByText('Nothing in this range lacks names').waitFor();
  await page.locator('input[type=file]').setInputFiles('/usr/bin/env'); // every Linux has it
  await page.getByText(/env: stored; it gives/).waitFor();
  await page.getByRole('row', { name: /^env / }).waitFor();
  await shoot(page, 'symbols');
  await context.close();
}

async function everywhere(browser, { url }) {
  const { context, page } = await fresh(browser);
  await page.goto(url);
  await page.getByText('checkout').first().waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await shoot(page, 'keys');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.waitForURL(/\/files$/);
  // The address changes first, the page and its focus with the next frame.
  await page.waitForFunction(() => document.activeElement.id === 'content');
  await page.keyboard.press('T');
  await page.getByRole('button', { name: 'UTC' }).waitFor();
  // On a phone everything can be read without moving sideways.
  await page.setViewportSize({ width: 390, height: 800 });
  for (const path of ['/', `/explore?query=${query('checkout')}`, '/files']) {
    await page.goto(url + path);
    if (path.includes('explore')) await painted(page);
    else await page.locator('main h1').first().waitFor();
    await settle(page);
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth,
      document.getElementById('content').scrollWidth) - innerWidth);
    assert.ok(wide <= 0, `${path} is ${wide} pixels too wide`);
    await page.screenshot({ path: join(outdir, `phone${path.split('?')[0].replaceAll('/', '-')}.png`) });
  }
  await context.close();
}

// Source text beside what its lines cost, and links of lines to a repository.
async function sources(browser) {
  const config = join(scratch, 'links.yaml');
  writeFileSync(config, 'source_links: [{url: "https://git.example/{commit}/{path}#L{line}", strip: [/build]}]\n');
  const server = await startServer(join(scratch, 'sources'), '127.0.0.1:0', ['--config', config]);
  const text = 'int first;\n\nint hot(void)\n{\n\treturn "<script>window.hacked=1</script>" != 0;\n}\n';
  const sum = createHash('sha256').update(text).digest('hex');
  const build = '00112233445566778899aabbccddeeff00112233';
  const file = '/build/src/a <b>.c';
  await send(server.url, '/api/v1/push?service_name=shop&commit=abc123', pprof([['main;hot', 3e8]], {
    at: Math.floor(Date.now() / 1000) - 60, build,
    places: { hot: { file, line: 5 }, main: { file: '/elsewhere/main.c', line: 9 } },
  }));
  await send(server.url, `/api/v1/sources?build_id=${build}`, `${sum}  ${file}\n`);
  await send(server.url, `/api/v1/sources/${sum}`, text);
  const { context, page } = await fresh(browser);
  await page.goto(`${server.url}/function?query=${query('shop')}&name=hot&part=lines`);
  const hot = page.locator('table.source tr.source-hot');
  await hot.waitFor();
  assert.equal(await page.locator('table.source tbody tr').count(), 5, 'the line and what is around it');
  assert.match(await hot.innerText(), /100.*%[^]*5[^]*return "<script>/);
  const href = 'https://git.example/abc123/src/a%20%3Cb%3E.c#L5';
  const link = hot.locator('a');
  assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel'), await link.getAttribute('target')],
    [href, 'noopener noreferrer', '_blank']);
  await page.screenshot({ path: join(outdir, 'source.png') });
  await page.goto(`${server.url}/explore?query=${query('shop')}&tab=lines`);
  await page.locator(`table.lines a[href="${href}"]`).waitFor();
  assert.equal(await page.locator('table.lines a[href^="http"]').count(), 1, 'none for what is elsewhere');
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await context.close();
  await server.end();
}

const browser = await startBrowser();
try {
  const main = await startServer(join(scratch, 'main'));
  await check('an empty server says how to send the first profile', () => emptyServer(browser, main));
  await demo(main.url);
  await check('services: numbers, search, sorting, keyboard', () => home(browser, main));
  await check('explore: dragging, searching, focusing', () => explore(browser, main));
  await check('two versions are compared', () => compare(browser, main));
  await check('a function has its page', () => functionPage(browser, main));
  await check('source text is shown, and lines are linked', () => sources(browser));
  await check('a shared address shows the same in a fresh browser', () => share(browser, main));
  await check('names are never markup', () => hostileNames(browser, main));
  await check('the policy stops inline script, style and eval', () => policy(browser, main));
  await check('keys, focus, clock, a phone', () => everywhere(browser, main));
  await check('files are opened, compared, and stored when asked', () => files(browser, main));
  await check('assay view shows files without a server', () => view(browser));
  await check('agents are listed and recordings made', () => recordings(browser, main));
  await check('symbols are uploaded', () => symbols(browser, main));
  await check('a token is wanted, wrong ones are explained', () => tokens(browser));
  await check('a server that is killed is said to be gone, and comes back', () => killed(browser));
  await check('no page complained', () => assert.deepEqual(complaints, []));
} finally {
  await browser.close();
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${failures === 0 ? 'All' : 'Not all'} is well after ${((Date.now() - started) / 1000).toFixed(0)} s; pictures are in ${outdir}.`);
process.exitCode = failures === 0 ? 0 : 1;
