// SPDX-License-Identifier: Apache-2.0
// The story's files: dropped on the page, shown by `assay view`, and what the page gives back.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ASSAY, call, PROFILES, start } from '../served.mjs';
import { drop, exported, fresh, painted, query, scratch, shoot } from './tools.mjs';

export async function files(browser, { url }) {
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
  const html = await exported(page, 'Page (HTML)');
  assert.equal(html.name, 'new.html');
  assert.match(html.content.toString(), /"kind":"diff"/);
  assert.match((await exported(page, 'Folded stacks')).content.toString(), /^main;.*escape_html \d+ \d+$/m);
  await page.getByLabel('Compared with').selectOption('stored');
  await page.waitForURL(/base_query/);
  await page.getByRole('group', { name: 'Before' }).waitFor();
  await painted(page);
  // Stored only when asked.
  const stored = async () => JSON.parse(
    (await call('GET', `${url}/api/v1/label/service_name/values?from=1980-01-01`)).text).includes('from-a-file');
  assert.equal(await stored(), false);
  await page.getByRole('button', { name: 'Store…' }).click();
  await page.getByRole('dialog').getByLabel('Service').fill('from-a-file');
  await page.getByRole('button', { name: 'Store', exact: true }).click();
  await page.getByText(/^Stored:/).waitFor();
  assert.equal(await stored(), true);
  await page.getByRole('button', { name: 'Close' }).last().click();
  // What is no profile is said to be none.
  await drop(page, [['picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3])]]);
  await page.getByRole('alert').first().waitFor();
  await context.close();
}

// What assay itself reads out of a file: functions and their shares.
function topOf(name, content) {
  const path = join(scratch, name);
  writeFileSync(path, content);
  return execFileSync(ASSAY, ['report', '--top', '3', path], { encoding: 'utf8' });
}

// Every format that the page offers is given, and holds what is on the page.
async function checkExports(page, stem) {
  for (const [item, suffix] of [['pprof', '.pb.gz'], ['Folded stacks', '.folded'],
    ['speedscope', '.speedscope.json'], ['OpenTelemetry', '.otlp']]) {
    const { name, content } = await exported(page, item);
    assert.equal(name, stem + suffix);
    const top = topOf(name, content);
    assert.match(top.split('\n')[2], /escape_html/, `${item}: ${top}`);
  }
  const svg = await exported(page, 'Picture (SVG)');
  assert.match(svg.content.toString(), /^(<\?xml[^>]*>\s*)?<svg[\s\S]*escape_html[\s\S]*<\/svg>\s*$/);
  const html = await exported(page, 'Page (HTML)');
  assert.match(html.content.toString(), /id="flame-data"[\s\S]*escape_html/);
  const png = await exported(page, 'Picture (PNG)');
  assert.equal(png.name, `${stem}.png`);
  assert.equal(png.content.subarray(1, 4).toString(), 'PNG');
  assert.ok(png.content.readUInt32BE(16) > 300 && png.content.readUInt32BE(20) > 80, 'its size');
  return html;
}

// A comparison's stacks, pictures and sides. Version 2.0 renders three times as slowly.
async function checkDifference(page) {
  const { name, content } = await exported(page, 'Folded stacks');
  assert.equal(name, 'checkout-diff.folded');
  const [, before, after] = /^main;serve;handle;render;template_exec;escape_html (\d+) (\d+)$/m
    .exec(content.toString()).map(Number);
  assert.ok(after > before && before > 0, `${before} and ${after}`);
  assert.match((await exported(page, 'Picture (SVG)')).content.toString(), /<svg[\s\S]*escape_html/);
  assert.match((await exported(page, 'Page (HTML)')).content.toString(), /"kind":"diff"/);
  const share = async (item, file) => {
    const side = await exported(page, item);
    assert.equal(side.name, file);
    return Number(/([\d.]+)%[^\n]*escape_html/.exec(topOf(side.name, side.content))[1]);
  };
  assert.ok(await share('After (pprof)', 'checkout-after.pb.gz')
    > await share('Before (pprof)', 'checkout-before.pb.gz'));
}

export async function exports(browser, { url }) {
  const { context, page } = await fresh(browser, { acceptDownloads: true });
  await page.goto(`${url}/explore?query=${query('checkout')}`);
  await painted(page);
  const html = await checkExports(page, 'checkout');
  // The page that was saved works by itself, from a file.
  const path = join(scratch, 'saved.html');
  writeFileSync(path, html.content);
  await page.goto(`file://${path}`);
  await painted(page);
  // Of a comparison there are pictures, of a function its stacks.
  await page.goto(`${url}/compare?query=${query('checkout', ',version="2.0"')}&base_query=${query('checkout', ',version="1.9"')}&from=now-1h&base_from=now-1h&base_to=now`);
  await painted(page);
  await checkDifference(page);
  const overlaid = (await exported(page, 'Picture (PNG)')).content;
  // Side by side it is the same difference, and a picture of both.
  await page.getByRole('button', { name: 'Side by side' }).click();
  await page.waitForURL(/layout=apart/);
  await page.reload(); // Chromium may refuse the eleventh download of one page
  await painted(page, 2);
  await checkDifference(page);
  const { name, content } = await exported(page, 'Picture (PNG)');
  assert.equal(name, 'checkout-diff.png');
  assert.ok(content.readUInt32BE(16) > overlaid.readUInt32BE(16), 'it is as wide as both');
  await page.goto(`${url}/function?query=${query('checkout')}&name=render`);
  await painted(page);
  assert.match((await exported(page, 'Folded stacks')).content.toString(), /^render;template_exec;escape_html \d+$/m);
  await context.close();
}

export async function view(browser) {
  const paths = ['base', 'new'].map((name) => join(scratch, `${name}.pb`));
  writeFileSync(paths[0], PROFILES.base);
  writeFileSync(paths[1], PROFILES.new);
  const served = await start(['view', ...paths], /^(http:\S+)$/, 'stdout');
  const { context, page } = await fresh(browser, { acceptDownloads: true }, /401/);
  await page.goto(served.url);
  await page.locator('.quality').nth(1).waitFor();
  await painted(page);
  assert.match((await page.locator('.quality').allInnerTexts()).join(), /Before: base\.pb.*After: new\.pb/s);
  assert.equal(await page.locator('.menu').count(), 0, 'there is only this page');
  assert.equal(await page.getByLabel('Normalization').evaluate(({ selectedOptions }) => selectedOptions[0]?.text), 'Per second, if known');
  assert.match((await exported(page, 'Picture (SVG)')).content.toString(), /<svg[\s\S]*escape_html/);
  await page.getByLabel('Compared with').selectOption('');
  await page.locator('.quality').nth(1).waitFor({ state: 'detached' });
  await painted(page);
  await checkExports(page, 'new');
  await drop(page, [['dropped.pb', PROFILES.new]]);
  await page.getByRole('heading', { name: 'dropped.pb' }).waitFor();
  await painted(page);
  await page.goto(served.url.replace(/[^/]+$/, '0'.repeat(32)));
  await page.getByText('complete URL').waitFor();
  await context.close();
  await served.end();
}

// A recording of this machine: its instructions are there, beside their lines.
export async function instructions(browser) {
  const source = join(scratch, 'spin.c'), program = join(scratch, 'spin');
  writeFileSync(source, `#include <stdlib.h>
__attribute__((noinline)) void spin(long n)
{
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}
int main(int argc, char **argv) { spin(atol(argv[argc - 1])); return 0; }
`);
  try {
    execFileSync('gcc', ['-O1', '-g', '-Wl,--build-id', '-o', program, source]);
  } catch {
    return 'there is no gcc';
  }
  const recording = join(scratch, 'spin.pb.gz');
  execFileSync(ASSAY, ['record', '-o', recording, '--', program, '1000000000'], { stdio: 'ignore' });
  const served = await start(['view', recording], /^(http:\S+)$/, 'stdout');
  const { context, page } = await fresh(browser, {});
  await page.goto(served.url);
  await painted(page);
  await page.locator('.flame .table-row', { hasText: 'spin' }).first().click({ button: 'right' });
  await page.locator('.context-item', { hasText: 'Show instructions' }).click();
  const dialog = page.getByRole('dialog', { name: 'Instructions' });
  const hot = dialog.locator('tr.source-hot');
  await hot.first().waitFor();
  assert.match((await hot.allInnerTexts()).join('\n'), /\bj(ne|nz)|\bdec/);
  assert.match((await hot.allInnerTexts()).join('\n'), /\d+(\.\d+)?%/);
  assert.match((await dialog.locator('.assembly').allInnerTexts()).join('\n'), /spin\.c:4\s+__asm__/);
  await shoot(page, 'instructions');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  // Where there is no code, the reason.
  await page.locator('.flame .table-row', { hasText: 'main' }).first().click({ button: 'right' });
  await page.locator('.context-item', { hasText: 'Show instructions' }).click();
  await dialog.getByText(/main/).first().waitFor();
  await context.close();
  await served.end();
  return undefined;
}
