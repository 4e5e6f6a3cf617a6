// SPDX-License-Identifier: Apache-2.0
// What the browser test and the benchmark share: loading the generator, making pages, and starting
// a headless Chromium that talks to no network.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
export const TEMPLATE = resolve(here, '../dist/flame.html');

export async function loadGenerator() {
  const result = await build({
    entryPoints: [join(here, 'synthetic.ts')],
    bundle: true, format: 'esm', target: 'node18', write: false, logLevel: 'warning',
  });
  const code = Buffer.from(result.outputFiles[0].text).toString('base64');
  return import(`data:text/javascript;base64,${code}`);
}

export function readTemplate() {
  if (!existsSync(TEMPLATE))
    throw new Error(`${TEMPLATE} is missing. Run "npm run build" first.`);
  return readFileSync(TEMPLATE, 'utf8');
}

export function writePage(directory, name, text) {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

export function fileUrl(path) {
  return pathToFileURL(resolve(path)).href;
}

// For what may take long on a machine that has other work.
export const PATIENCE_MS = 120_000;

// Tries what is asserted again until it holds: a page changes a moment after what was done to it.
export async function until(body, patience = PATIENCE_MS) {
  for (const end = Date.now() + patience; ;) {
    try {
      return await body();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((done) => { setTimeout(done, 100); });
    }
  }
}

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}
