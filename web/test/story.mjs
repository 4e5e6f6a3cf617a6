// SPDX-License-Identifier: Apache-2.0
// The server's page in a real browser, as a person uses it, against real servers:
//   ASSAY=build/assay node test/story.mjs [--outdir DIR] [--only WORDS] [--axe]
// Screenshots of every page, light and dark, go to DIR. With --axe, every page is only examined by axe.

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { demo, endAll, startServer } from './served.mjs';
import * as access from './story/access.mjs';
import { charts, compareRanges, labelGrid, roomy } from './story/chart.mjs';
import * as control from './story/control.mjs';
import * as file from './story/files.mjs';
import * as pages from './story/pages.mjs';
import { saved } from './story/saved.mjs';
import { refreshes } from './story/refresh.mjs';
import * as tables from './story/tables.mjs';
import { feedRequests, requests } from './story/requests.mjs';
import { sources } from './story/source.mjs';
import { tasks } from './story/tasks.mjs';
import { feed, triage } from './story/wall.mjs';
import { axeOnly, check, complaints, failures, outdir, scratch } from './story/tools.mjs';
import { startBrowser } from './support.mjs';

const started = Date.now();
const browser = await startBrowser();
async function story() {
  const main = await startServer(join(scratch, 'main'));
  await check('an empty server says how to send the first profile', () => pages.emptyServer(browser, main));
  await demo(main.url);
  await check('services: numbers, search, sorting, keyboard', () => pages.home(browser, main));
  await check('views refresh, and bad times are errors', () => pages.refresh(browser, main));
  await check('the functions of the fleet', () => pages.functions(browser, main));
  await check('explore: dragging, searching, focusing', () => pages.explore(browser, main));
  await check('the chart is a control', () => charts(browser, main));
  await check('views, notes and pins are kept, and a range is taken along', () => saved(browser, main));
  await check('small charts by label', () => labelGrid(browser, main));
  await check('two versions are compared', () => pages.compare(browser, main));
  await check('ranges of a comparison are dragged', () => compareRanges(browser, main));
  await check('most of a page is content', () => roomy(browser, main));
  await check('six tasks take few clicks', () => tasks(browser));
  await check('a page that refreshes itself does not grow', () => refreshes(browser, main));
  await check('a function has its page', () => pages.functionPage(browser, main));
  await check('source text is shown, and lines are linked', () => sources(browser));
  await check('a shared address shows the same in a fresh browser', () => pages.share(browser, main));
  await check('names are never markup', () => pages.hostileNames(browser, main));
  await check('the policy stops inline script, style and eval', () => pages.policy(browser, main));
  await check('keys, focus, clock', () => pages.everywhere(browser, main));
  await check('Tab reaches everything, by name', () => pages.keyboard(browser, main));
  await check('arrow keys work at once, focus stays in the page', () => access.focus(browser, main));
  await check('a phone', () => pages.phone(browser, main));
  await check('a graph is given in every format', () => file.exports(browser, main));
  await check('files are opened, compared, and stored when asked', () => file.files(browser, main));
  await check('assay view shows files without a server', () => file.view(browser));
  await check('instructions beside source lines', () => file.instructions(browser));
  await check('what was folded away can be opened', () => pages.others(browser, main));
  await check('tables of a fleet are exact', () => tables.tables(browser, main));
  await check('original names', () => pages.names(browser, main));
  await check('colours of states', () => pages.states(browser, main));
  await check('triage: where the time of threads went', () => triage(browser, main));
  await check('requests: what the slow ones do that others do not', () => requests(browser));
  // It takes its first window meanwhile.
  const real = control.startReal();
  real.catch(() => undefined);
  await check('agents are listed and recordings made', () => control.recordings(browser, main));
  await check('agents are given orders', () => access.orders(browser, main));
  await check('symbols are uploaded', () => control.symbols(browser, main));
  await check('loading can be cancelled', () => control.cancelled(browser, main));
  await check('a token is wanted, wrong ones are explained', () => control.tokens(browser));
  await check('a server that is killed is said to be gone, and comes back', () => control.killed(browser));
  await check('a real agent samples, and records on demand', async () => {
    const up = await real;
    if (!up) return 'this user may not sample the whole machine';
    return control.realAgent(browser, up);
  });
  await check('no page complained', () => assert.deepEqual(complaints, []));
}

async function examined() {
  const main = await startServer(join(scratch, 'main'));
  await demo(main.url);
  await access.furnish(main);
  await feed(main.url);
  const chain = await startServer(join(scratch, 'chain'));
  await feedRequests(chain.url);
  await check('axe has no complaint', () => access.axe(browser, main, chain.url));
  await check('no page complained', () => assert.deepEqual(complaints, []));
}

try {
  await (axeOnly ? examined() : story());
} finally {
  await browser.close();
  await endAll();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${failures === 0 ? 'All' : 'Not all'} is well after ${((Date.now() - started) / 1000).toFixed(0)} s; pictures are in ${outdir}.`);
process.exitCode = failures === 0 ? 0 : 1;
