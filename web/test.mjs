// SPDX-License-Identifier: Apache-2.0
// Runs the unit tests: bundles test/*.test.ts for Node and hands them to its own test runner.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const outdir = mkdtempSync(join(tmpdir(), 'assay-web-test-'));
try {
  const tests = readdirSync(join(here, 'test')).filter((name) => name.endsWith('.test.ts'));
  await build({
    absWorkingDir: here,
    entryPoints: tests.map((name) => `test/${name}`),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node18',
    outExtension: { '.js': '.mjs' },
    sourcemap: 'inline',
    outdir,
    logLevel: 'warning',
  });
  const files = readdirSync(outdir).map((name) => join(outdir, name));
  const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files],
    { stdio: 'inherit', env: { ...process.env, WEB: here } });
  process.exitCode = status ?? 1;
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
