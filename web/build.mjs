// SPDX-License-Identifier: Apache-2.0
// Builds the self-contained page: node build.mjs --outdir DIR writes DIR/flame.html, a template into
// which the program inserts its data and title. The same sources always give the same bytes.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const TOKENS = ['<!--ASSAY-TITLE-->', '<!--ASSAY-FLAME-DATA-->'];
const MAX_BYTES = 72 * 1024;

async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: ['flame/main.ts'],
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['es2022', 'chrome94', 'firefox93', 'safari15.4'],
    charset: 'utf8',
    legalComments: 'none',
    outdir: 'out',
    write: false,
    logLevel: 'warning',
  });
  const textOf = (suffix) => {
    const file = result.outputFiles.find(({ path }) => path.endsWith(suffix));
    if (!file) throw new Error(`esbuild made no ${suffix} file out of flame/main.ts.`);
    return file.text.trim();
  };
  return { script: textOf('.js'), style: textOf('.css') };
}

function hashOf(text) {
  return `sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}`;
}

function fill(template, { script, style }) {
  const parts = {
    'STYLE-HASH': hashOf(style), 'SCRIPT-HASH': hashOf(script), STYLE: style, SCRIPT: script,
  };
  const page = template.replace(/\{\{([A-Z-]+)\}\}/g, (_, key) => parts[key]);
  for (const token of TOKENS)
    if (page.split(token).length !== 2)
      throw new Error(`The page must hold ${token} exactly once. Look for it in flame/.`);
  if (/<\/(script|style)/i.test(script + style))
    throw new Error('The bundle holds a closing tag that would end it early. Look in flame/.');
  return page;
}

const { values } = parseArgs({ options: { outdir: { type: 'string', default: 'dist' } } });
const outdir = resolve(values.outdir);
const page = fill(readFileSync(join(here, 'flame/page.html'), 'utf8'), await bundle());
const size = Buffer.byteLength(page);
if (size > MAX_BYTES)
  throw new Error(`flame.html is ${size} bytes, over its limit of ${MAX_BYTES}.`);
mkdirSync(outdir, { recursive: true });
writeFileSync(join(outdir, 'flame.html'), page);
