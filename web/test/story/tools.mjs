// SPDX-License-Identifier: Apache-2.0
// What the parts of the story share: fresh browsers, pictures, waiting for graphs, files that are
// dropped on the page and files that it gives.

import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PATIENCE_MS, until } from '../support.mjs';

const { values } = parseArgs({ options: { outdir: { type: 'string' }, only: { type: 'string' }, axe: { type: 'boolean' } } });
export const axeOnly = values.axe === true;
export const scratch = mkdtempSync(join(tmpdir(), 'assay-story-'));
export const outdir = values.outdir ?? join(scratch, 'shots');
mkdirSync(outdir, { recursive: true });

export const complaints = [];
const open = new Set(); // contexts
export let failures = 0;

export async function check(name, body) {
  if (values.only && !name.includes(values.only)) return;
  const began = Date.now();
  try {
    const skipped = await body();
    console.log(`ok - ${name} (${Date.now() - began} ms)${skipped ? ` # left out: ${skipped}` : ''}`);
  } catch (error) {
    failures++;
    console.log(`not ok - ${name}`);
    console.log(String(error.stack ?? error).replace(/^/gm, '  # '));
    for (const context of open)
      for (const page of context.pages()) {
        console.log(`  # ${page.url()}`);
        await page.screenshot({ path: join(outdir, `failed-${failures}.png`) }).catch(() => undefined);
      }
  }
  for (const context of open) await context.close().catch(() => undefined);
}

// A fresh browser: no storage, no cookies. What a page complains about is kept; `expected` says what
// it is meant to.
export async function fresh(browser, options = {}, expected = null) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce', ...options,
  });
  open.add(context);
  context.on('close', () => open.delete(context));
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

export const settle = (page) => page.evaluate(() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done))));

// Both themes of what is on the page now.
export async function shoot(page, name) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await settle(page);
    await page.screenshot({ path: join(outdir, `${name}-${scheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await settle(page); // charts are made anew for other colours
}

// A flame graph is there when it has painted.
export const painted = (page, count = 1) => page.waitForFunction((wanted) =>
  [...document.querySelectorAll('.flame canvas')].filter((canvas) => {
    if (canvas.width === 0 || canvas.height === 0 || canvas.offsetParent === null) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value) => value !== 0);
  }).length >= wanted, count);

export const query = (service, more = '') =>
  encodeURIComponent(`cpu{service_name="${service.replaceAll('"', '\\"')}"${more}}`);

export const searchField = (page) => page.locator('.flame input[type=search]').first();

// As the browser does when somebody lets files go over the page.
export async function drop(page, files) {
  const transfer = await page.evaluateHandle((list) => {
    const out = new DataTransfer();
    for (const [name, bytes] of list) out.items.add(new File([new Uint8Array(bytes)], name));
    return out;
  }, files.map(([name, bytes]) => [name, [...bytes]]));
  await until(async () => {
    await page.dispatchEvent('main', 'dragover', { dataTransfer: transfer });
    await page.getByText('Drop to open').waitFor({ timeout: 5000 });
  });
  await page.dispatchEvent('main', 'drop', { dataTransfer: transfer });
}

// What the page gives when an item of its export menu is chosen: the file's name and content.
export async function exported(page, item) {
  const menu = page.locator('details.picker').filter({ hasText: 'Export' });
  if (!await menu.getByRole('button').first().isVisible()) await menu.locator('summary').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'), menu.getByRole('button', { name: item, exact: true }).click()]);
  return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
}
