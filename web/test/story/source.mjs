// SPDX-License-Identifier: Apache-2.0
// The story's last click: from a function to its lines of source.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pprof } from '../pprof.mjs';
import { send, startServer } from '../served.mjs';
import { fresh, query, scratch, shoot } from './tools.mjs';

// Source text beside what its lines cost, and links of lines to a repository.
export async function sources(browser) {
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
  await shoot(page, 'source');
  await page.goto(`${server.url}/explore?query=${query('shop')}&tab=lines`);
  await page.locator(`table.lines a[href="${href}"]`).waitFor();
  assert.equal(await page.locator('table.lines a[href^="http"]').count(), 1, 'none for what is elsewhere');
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  await context.close();
  await server.end();
}
