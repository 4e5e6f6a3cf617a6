// SPDX-License-Identifier: Apache-2.0
// The part of the benchmark that needs a server: how soon the page can be used, and how soon a file
// that is opened is drawn, here and in speedscope.

import { createReadStream, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { demo, endAll, startServer } from './test/served.mjs';

// The generator's tree as the stacks of a speedscope file, which both sides read.
export function speedscopeFile(document) {
  const { strings, functions, nodes, self } = document;
  const parent = [0], func = [-1];
  nodes.up.forEach((up, i) => {
    parent.push(i + 1 - up);
    func.push(nodes.function[i]);
  });
  const samples = [], weights = [];
  for (let n = 1; n < parent.length; n++) {
    if (self[0][n] <= 0) continue;
    const stack = [];
    for (let at = n; at > 0; at = parent[at]) stack.push(func[at]);
    samples.push(stack.reverse());
    weights.push(self[0][n]);
  }
  const end = weights.reduce((sum, weight) => sum + weight, 0);
  return JSON.stringify({
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    shared: { frames: functions.name.map((name) => ({ name: strings[name] })) },
    profiles: [{ type: 'sampled', name: 'bench', unit: 'none', startValue: 0, endValue: end, samples, weights }],
  });
}

// Runs in the page before anything else: from the choice of a file to the frame that shows it, which is
// the first whose canvas has something on it. speedscope draws frames by WebGL and their names on a
// canvas over it, in one go; the names are what is looked for, as they are here. A frame's end is
// seen from a task behind it.
function watch(selector) {
  const drawn = (canvas) => {
    if (canvas.width < 200 || canvas.height < 200 || !canvas.checkVisibility()) return false;
    const { data } = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
    return data.some((value) => value !== 0);
  };
  window.addEventListener('change', (event) => {
    if (event.target.type !== 'file') return;
    const start = performance.now();
    const look = () => {
      if (![...document.querySelectorAll(selector)].some(drawn)) requestAnimationFrame(look);
      else requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => { window.openedIn = performance.now() - start; };
        channel.port2.postMessage(null);
      });
    };
    look();
  }, true);
}

// How many colours a screenshot has: few when nothing is drawn.
async function coloursOf(page) {
  const shot = (await page.screenshot()).toString('base64');
  const viewer = await page.context().browser().newPage();
  const count = await viewer.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return new Set(new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)).size;
  }, shot);
  await viewer.close();
  return count;
}

// A picture of a graph has some hundred colours, of words on a plain page some dozen.
const GRAPH_COLOURS = 80;

async function open(browser, url, file, selector) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(watch, selector);
  await page.goto(url);
  await page.locator('input[type=file]').first().waitFor({ state: 'attached' });
  await page.locator('input[type=file]').first().setInputFiles(file);
  await page.waitForFunction(() => window.openedIn !== undefined, null, { timeout: 120_000 });
  const took = await page.evaluate(() => window.openedIn);
  const colours = await coloursOf(page);
  await page.close();
  if (colours < GRAPH_COLOURS)
    throw new Error(`${url} was taken for drawn when its picture had ${colours} colours.`);
  return took;
}

// From the first byte asked for to a list of services that answers to clicks.
async function load(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    const look = () => {
      if (!document.querySelector('tbody tr a')) requestAnimationFrame(look);
      else requestAnimationFrame(() => setTimeout(() => { window.usableAt = performance.now(); }));
    };
    requestAnimationFrame(look);
  });
  await page.goto(url);
  await page.waitForFunction(() => window.usableAt !== undefined);
  const took = await page.evaluate(() => window.usableAt);
  await page.close();
  return took;
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

function serveFolder(folder) {
  return new Promise((done) => {
    const server = createServer((request, response) => {
      const path = join(folder, normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)));
      const file = path.endsWith('/') ? join(path, 'index.html') : path;
      if (!existsSync(file)) return response.writeHead(404).end();
      response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
      return createReadStream(file).pipe(response);
    });
    server.listen(0, '127.0.0.1', () => done(server));
  });
}

const times = async (count, body) => {
  const list = [];
  for (let i = 0; i < count; i++) list.push(await body());
  return list.sort((a, b) => a - b);
};

// `report(name, held, text)` is told of each bar.
export async function measurePages(browser, document, runs, report) {
  const scratch = mkdtempSync(join(tmpdir(), 'assay-web-bench-'));
  const file = join(scratch, 'bench.speedscope.json');
  writeFileSync(file, speedscopeFile(document));
  const middle = (list) => list[Math.floor(list.length / 2)];
  try {
    const { url } = await startServer(join(scratch, 'data'), '127.0.0.1:0', ['--memory-limit', '4G']);
    await demo(url);
    const loads = await times(runs, () => load(browser, url));
    report('interactive after a local load', middle(loads) <= 300,
      `${middle(loads).toFixed(0)} ms (best ${loads[0].toFixed(0)}), at most 300`);
    const ours = await times(runs, () => open(browser, `${url}/files`, file, '.flame canvas'));
    const peer = process.env.SPEEDSCOPE ?? '';
    if (!existsSync(join(peer, 'index.html'))) {
      report('opening a file', null, `${middle(ours).toFixed(0)} ms; speedscope isn't here to compare with`);
      return;
    }
    const server = await serveFolder(peer);
    const theirs = await times(runs, () => open(browser, `http://127.0.0.1:${server.address().port}/`, file, 'canvas'));
    server.close();
    const ratio = theirs[0] / ours[0];
    report('first paint of the same file', ratio >= 2,
      `${middle(ours).toFixed(0)} ms (best ${ours[0].toFixed(0)}), speedscope ${middle(theirs).toFixed(0)} ms `
      + `(best ${theirs[0].toFixed(0)}): ${ratio.toFixed(1)} times as fast, at least 2`);
  } finally {
    await endAll();
    rmSync(scratch, { recursive: true, force: true });
  }
}
