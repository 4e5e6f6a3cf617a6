// SPDX-License-Identifier: Apache-2.0
// Builds the pages: node build.mjs --outdir DIR writes DIR/flame.html, the self-contained page, a
// template into which the program inserts its data and title; node build.mjs --ui DIR writes the
// server's page, as files named by their content. The same sources always give the same bytes.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const TOKENS = ['<!--ASSAY-TITLE-->', '<!--ASSAY-FLAME-DATA-->'];
const MAX_BYTES = 128 * 1024;
const UI_MAX_GZIP_BYTES = 170 * 1000;

const COMMON = {
  bundle: true,
  minify: true,
  target: ['es2022', 'chrome94', 'firefox93', 'safari15.4'],
  charset: 'utf8',
  legalComments: 'none',
  outdir: 'out',
  write: false,
  logLevel: 'warning',
};

async function bundle(entry) {
  const result = await build({ absWorkingDir: here, entryPoints: [entry], ...COMMON, format: 'iife' });
  const textOf = (suffix) => {
    const file = result.outputFiles.find(({ path }) => path.endsWith(suffix));
    if (!file) throw new Error(`esbuild made no ${suffix} file out of ${entry}.`);
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

function writePage(outdir, { script, style }) {
  const page = fill(readFileSync(join(here, 'flame/page.html'), 'utf8'), { script, style });
  const size = Buffer.byteLength(page);
  if (size > MAX_BYTES)
    throw new Error(`flame.html is ${size} bytes, over its limit of ${MAX_BYTES}.`);
  mkdirSync(outdir, { recursive: true });
  writeFileSync(join(outdir, 'flame.html'), page);
}

const nameOf = (text, suffix) =>
  `app-${createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 12)}${suffix}`;

// The page's script is three files: what is needed first, the other pages, and what both share. Each
// is named by its content, so those that it names come before it.
async function bundleUi() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here, entryPoints: ['ui/main.tsx'], ...COMMON,
    format: 'esm', splitting: true, jsx: 'automatic', jsxImportSource: 'preact', metafile: true,
  });
  const made = new Map(outputFiles.map(({ path, text }) => [basename(path), text.trim()]));
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, out]) => [basename(path), out]));
  const files = new Map();
  const finish = (old) => {
    let text = made.get(old);
    for (const { path } of outputs.get(old).imports)
      text = text.replaceAll(basename(path), finish(basename(path)));
    const name = nameOf(text, extname(old));
    files.set(name, text);
    return name;
  };
  const needed = outputs.get('main.js').imports.filter(({ kind }) => kind === 'import-statement');
  return {
    script: finish('main.js'), style: finish('main.css'), files,
    preloads: needed.map(({ path }) => finish(basename(path))),
  };
}

function writeUi(outdir, { script, style, preloads, files }) {
  const parts = {
    SCRIPT: script, STYLE: style,
    PRELOADS: preloads.map((name) => `<link rel="modulepreload" href="/assets/${name}">`).join('\n'),
  };
  const page = readFileSync(join(here, 'ui/index.html'), 'utf8')
    .replace(/\{\{([A-Z]+)\}\}/g, (_, key) => parts[key]);
  const size = [...files.values()].reduce((sum, text) => sum + gzipSync(text).length, 0);
  if (size > UI_MAX_GZIP_BYTES)
    throw new Error(`The bundle is ${size} bytes gzipped, over its limit of ${UI_MAX_GZIP_BYTES}.`);
  rmSync(outdir, { recursive: true, force: true }); // files of older contents have other names
  mkdirSync(outdir, { recursive: true });
  writeFileSync(join(outdir, 'index.html'), page);
  for (const [name, text] of files) writeFileSync(join(outdir, name), text);
}

const { values } = parseArgs({ options: { outdir: { type: 'string' }, ui: { type: 'string' } } });
if (values.ui)
  writeUi(resolve(values.ui), await bundleUi());
if (values.outdir || !values.ui)
  writePage(resolve(values.outdir ?? 'dist'), await bundle('flame/main.ts'));
