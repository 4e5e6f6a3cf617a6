// SPDX-License-Identifier: Apache-2.0
// The story's servers and agents: recordings, symbols, tokens, a server that is slow and one that is
// gone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ASSAY, call, demo, PROFILES, send, start, startServer } from '../served.mjs';
import { exported, fresh, painted, query, scratch, shoot } from './tools.mjs';
import { PATIENCE_MS, until } from '../support.mjs';

// An agent as it shows itself to the server.
const reportOf = (recordings) => JSON.stringify({
  agent: 'agent-1', host: 'web-1', version: '0.1.0', labels: { region: 'eu' },
  sent_at: Date.now() / 1000,
  status: { means: 'bpf', rate_hz: 19, samples: 51234, cpu_share: 0.004, resident_bytes: 31e6, losses: { copies: 3 } },
  recordings,
});

// Starts one from the page and returns its id.
async function record(page, url, service, seconds = '') {
  await page.goto(`${url}/recordings`);
  await page.getByRole('button', { name: 'Record…' }).click();
  await page.getByRole('combobox', { name: 'Service' }).fill(service);
  await page.keyboard.press('Enter');
  if (seconds !== '') await page.getByLabel('Seconds', { exact: true }).fill(seconds);
  await page.getByRole('button', { name: 'Record', exact: true }).click();
  await page.waitForURL(/id=/);
  return new URL(page.url()).searchParams.get('id');
}

export async function recordings(browser, { url }) {
  await send(url, '/api/v1/agents/report', reportOf([]));
  const { context, page } = await fresh(browser, {}, /404/); // times of samples, which this one lacks
  await page.goto(`${url}/agents`);
  await page.getByRole('row', { name: /web-1/ }).waitFor();
  assert.match(await page.getByRole('row', { name: /web-1/ }).innerText(), /19 Hz.*0\.40%/s);
  await shoot(page, 'agents');
  const id = await record(page, url, 'checkout');
  await page.getByText('pending…').waitFor();
  await send(url, '/api/v1/agents/report', reportOf([{ id, state: 'running', samples: 12 }]));
  await page.getByText('running…').waitFor();
  await shoot(page, 'recording');
  await send(url, `/api/v1/push?service_name=checkout&recording=${id}&host=web-1`, PROFILES.new);
  await send(url, '/api/v1/agents/report', reportOf([{ id, state: 'done', samples: 990 }]));
  await page.getByText('Finished (done)').waitFor();
  await page.getByRole('link', { name: 'Open' }).click();
  await page.waitForURL(/\/explore/);
  await painted(page);
  await page.goto(`${url}/recordings`);
  await page.getByRole('row', { name: /checkout/ }).waitFor();
  await shoot(page, 'recordings');
  await context.close();
}

// Server, agent and a program that really runs, as one command; null where this user may not sample.
export async function startReal() {
  const real = await start(['up', '--demo', '--listen', '127.0.0.1:0', '--data', join(scratch, 'up')],
    /^assay: serving on (http\S+)/);
  await real.said(/Sampling by/);
  if (!real.lines.some((line) => /of this user/.test(line))) return real;
  await real.end();
  return null;
}

// The server finds names for addresses a little later than it gets them.
async function named(page, name) {
  await until(async () => {
    await painted(page);
    const cell = page.getByRole('gridcell', { name }).first();
    await cell.waitFor({ timeout: 3000 }).catch(async (error) => {
      await page.reload();
      throw error;
    });
  }, 2 * PATIENCE_MS); // an agent does little on a machine that is very busy
}

// The recording's page says when each thread did what; the sums are those of what is stored.
async function timed(page, url) {
  const heat = page.locator('.time-heat');
  await heat.waitFor();
  await painted(page);
  const id = new URL(page.url()).searchParams.get('id');
  const ask = async (path) => JSON.parse((await call('GET', `${url}/api/v1/${path}`)).text);
  const { flame } = await ask(`recordings/${id}/flame`);
  const { total } = await ask(`top?query=${encodeURIComponent(`cpu{recording="${id}"}`)}&from=now-1h`);
  assert.equal(flame.times.value.reduce((sum, value) => sum + value, 0), total);
  assert.ok(flame.times.threads.every(({ tid }) => tid > 0), JSON.stringify(flame.times.threads));
  await page.locator('.time-thread').first().focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('region', { name: 'Stack' }).getByRole('listitem').first().waitFor();
  await shoot(page, 'recording-time');
  // A range of it, as a graph and in the address.
  await heat.focus();
  for (const key of ['ArrowRight', 'Shift+ArrowRight', 'Enter']) await page.keyboard.press(key);
  await page.waitForURL(/span/);
  await page.getByRole('button', { name: /^Undo: time: / }).click();
  await page.waitForURL((now) => !/span/.test(now.href));
  for (const [item, tool] of [['Chrome trace, Perfetto', 'chrome-trace'], ['Firefox Profiler', 'firefox']]) {
    const { name, content } = await exported(page, item);
    const path = join(scratch, name);
    writeFileSync(path, content);
    assert.match(execFileSync(ASSAY, ['info', path], { encoding: 'utf8' }), new RegExp(`format +${tool}\\ntypes +samples`));
  }
}

export async function realAgent(browser, real) {
  const { url } = real;
  const { context, page } = await fresh(browser, { acceptDownloads: true }, /404/);
  await page.goto(`${url}/agents`);
  await page.getByRole('row', { name: /Hz/ }).waitFor();
  // On a busy machine it may sample less, and says so.
  assert.match(await page.getByRole('row', { name: /Hz/ }).innerText(), /(\bok\b|target|collectors? off)[\s\S]*\d+ Hz|\d+ Hz[\s\S]*(target|collectors? off)/);
  // What is sampled all the time is there after its first window, under the program's own names.
  await page.goto(`${url}/?from=now-5m&search=demo`); // many others may run here
  const service = page.getByRole('link', { name: /demo/ }).first();
  await until(async () => {
    await page.reload();
    await service.waitFor({ timeout: 5000 });
  });
  const name = (await service.innerText()).trim();
  await service.click();
  await painted(page);
  await named(page, /find_discount|same_letters/);
  await record(page, url, name, '4');
  await page.getByText('Finished (done)').waitFor({ timeout: 2 * PATIENCE_MS });
  await page.getByRole('status').filter({ hasText: /[1-9]\d* samples/ }).waitFor();
  await timed(page, url);
  await page.getByRole('link', { name: 'Open' }).click();
  await page.waitForURL(/\/explore/);
  await painted(page);
  await named(page, /find_discount|same_letters/);
  await shoot(page, 'real-recording');
  await page.goBack();
  await page.getByRole('link', { name: 'Compare with the previous hour' }).click();
  await page.waitForURL(/\/compare/);
  await painted(page);
  await context.close();
}

export async function symbols(browser, { url }) {
  const { context, page } = await fresh(browser);
  await send(url, '/api/v1/maps?service=checkout&version=1.4&name=app.js',
    '{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}');
  await page.goto(`${url}/symbols`);
  await page.getByRole('row', { name: /app\.js/ }).waitFor();
  await page.getByText('No symbols are missing in this range').waitFor();
  await page.locator('input[type=file]').setInputFiles('/usr/bin/env'); // every Linux has it
  await page.getByText(/env: stored; it has/).waitFor();
  await page.getByRole('row', { name: /^env / }).waitFor();
  await shoot(page, 'symbols');
  await context.close();
}

// What the server says to a token: nothing when all is well.
async function whyNot(url, token) {
  const { status, text } = await call('GET', `${url}/api/v1/types`,
    { headers: { Authorization: `Bearer ${token}` } });
  return status === 200 ? '' : text;
}

export async function tokens(browser) {
  const data = join(scratch, 'guarded');
  const file = join(scratch, 'tokens');
  const make = (name, ...more) => execFileSync(ASSAY,
    ['token', 'create', name, '--file', file, ...more], { encoding: 'utf8', stdio: 'pipe' })
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
  await page.getByText('Unknown token').waitFor();
  await shoot(page, 'login');
  await enter(sender);
  await page.getByText(/has the role ingest, but this request requires read/).waitFor();
  await enter(reader);
  await painted(page);
  assert.match(page.url(), /checkout/, 'the address is what it was');
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.evaluate(() => localStorage.getItem('assay-token')), null);
  // One that is revoked, or ends, while the page is open: the page says so, and goes on where it was.
  execFileSync(ASSAY, ['token', 'revoke', 'reader', '--file', file]);
  server.signal('SIGHUP');
  const refused = (words) => until(async () => {
    const again = page.getByRole('button', { name: /Retry|Refresh/ }).first();
    if (await again.isVisible()) await again.click({ timeout: 2000 }).catch(() => {}); // it goes when the login comes
    await page.getByText(words).waitFor({ timeout: 1000 });
  });
  await refused('Unknown token');
  // A slow machine may take longer to log in than a token lasts: then one that lasts longer.
  for (const seconds of [5, 20, 80]) {
    const brief = make(`brief-${seconds}`, '--roles', 'read', '--expires', `${seconds}s`);
    server.signal('SIGHUP');
    await until(async () => assert.doesNotMatch(await whyNot(server.url, brief), /not known/));
    await enter(brief);
    const expired = page.getByText(/expired/);
    await expired.or(page.locator('.flame')).first().waitFor();
    if (!await expired.isVisible()) break;
  }
  await refused(/expired/);
  assert.match(page.url(), /checkout/);
  await context.close();
  await server.end();
}

// Who doesn't want to wait cancels, and is asked back in.
export async function cancelled(browser, { url }) {
  const { context, page } = await fresh(browser);
  let held = [];
  await page.route(/\/api\/v1\/flame/, (route) => { held.push(route); });
  await page.goto(`${url}/explore?query=${query('checkout')}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('The request was cancelled').waitFor();
  assert.equal(await page.locator('.flame').count(), 0);
  await shoot(page, 'cancelled');
  await Promise.all(held.map((route) => route.abort().catch(() => undefined)));
  held = [];
  await page.unroute(/\/api\/v1\/flame/);
  await page.getByRole('main').getByRole('button', { name: 'Retry' }).last().click();
  await painted(page);
  await page.getByText('The request was cancelled').waitFor({ state: 'detached' });
  await context.close();
}

export async function killed(browser) {
  const data = join(scratch, 'killed');
  const server = await startServer(data);
  await demo(server.url);
  const { context, page } = await fresh(browser, {}, /ERR_CONNECTION|Failed to load/);
  await page.goto(`${server.url}/explore?query=${query('checkout')}`);
  await painted(page);
  await server.end('SIGKILL');
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByRole('alert').getByText('does not answer').waitFor();
  await painted(page); // what was there still is
  await shoot(page, 'killed');
  const again = await startServer(data, server.url.replace('http://', ''));
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await again.end();
  await context.close();
}
