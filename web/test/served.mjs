// SPDX-License-Identifier: Apache-2.0
// A real server for tests of its page: started on a free port with a folder of its own, fed with
// made-up profiles, and ended.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { pprof } from './pprof.mjs';

export const ASSAY = process.env.ASSAY ?? 'assay';
const running = new Set();

// Starts assay and waits for the line that holds its address. `line` is a RegExp with one group.
export async function start(args, line, stream = 'stderr') {
  const child = spawn(ASSAY, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = [];
  const waiting = [];
  running.add(child);
  child.on('exit', () => running.delete(child));
  const found = new Promise((resolve, reject) => {
    for (const name of ['stdout', 'stderr'])
      createInterface({ input: child[name] }).on('line', (text) => {
        said.push(text);
        for (const { pattern, done } of waiting) if (pattern.test(text)) done();
        const match = name === stream && line.exec(text);
        if (match) resolve(match[1]);
      });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`assay ${args[0]} ended with ${code}: ${said.join(' ')}`)));
  });
  const url = await found;
  return {
    url,
    lines: said,
    // Until it has said something.
    said: (pattern) => new Promise((done) => {
      if (said.some((text) => pattern.test(text))) done();
      else waiting.push({ pattern, done });
    }),
    signal: (name) => child.kill(name),
    end: async (signal = 'SIGTERM') => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, 'exit');
    },
  };
}

// What a test has left behind.
export async function endAll() {
  await Promise.all([...running].map(async (child) => {
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await gone;
    clearTimeout(timer);
  }));
}

export function startServer(data, listen = '127.0.0.1:0', more = []) {
  return start(['server', '--listen', listen, '--data', data, ...more], /^assay: serving on (http\S+)/);
}

// Each over a connection of its own: one that is kept may be closed by a server that waited long
// enough, just when the next request is on its way.
export function call(method, url, { body = '', headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, async (response) => {
      try {
        resolve({ status: response.statusCode, text: await text(response) });
      } catch (error) {
        reject(error);
      }
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

export async function send(url, path, body, headers = {}) {
  const { status, text: answer } = await call('POST', url + path, { body, headers });
  if (status >= 300) throw new Error(`${path}: ${status} ${answer}`);
  return answer;
}

export const HOSTILE_FUNCTION = '<script>window.hacked=1</script>';
export const HOSTILE_SERVICE = '"quoted" <img src=x onerror=window.hacked=1>';

const STACKS = [
  ['main;serve;handle;parse_request;scan_header', 40], ['main;serve;handle;route;match_path', 30],
  ['main;serve;handle;render;template_exec;escape_html', 60],
  ['main;serve;handle;render;template_exec;write', 25],
  ['main;serve;handle;db_query;encode_row;varint', 45], ['main;serve;handle;db_query;net_read', 20],
  ['main;serve;handle;db_query;decode_row;checksum', 35], ['main;gc;mark;scan_object', 50],
  ['main;gc;sweep', 15], ['main;log_flush;format_line;strftime', 10],
  [`main;serve;handle;${HOSTILE_FUNCTION}`, 12],
];

// One host's window of ten seconds. Version 2.0 renders three times as slowly.
function stacksOf(service, version, host, step) {
  return STACKS.map(([stack, count], i) => {
    const slow = version === '2.0' && stack.includes('render') ? 3 : 1;
    const wave = 1 + 0.3 * Math.sin(step / 3 + i + service.length);
    return [stack, count * slow * wave * (host === 'web-2' ? 1.3 : 1) * 5e7 / service.length];
  });
}

// Half an hour of four services on two hosts; one of them changes its version in the middle.
export async function demo(url, headers = {}) {
  const now = Math.floor(Date.now() / 10000) * 10;
  const pushes = [];
  for (let step = 0; step < 30; step++)
    for (const service of ['checkout', 'search', 'gateway', HOSTILE_SERVICE])
      for (const host of ['web-1', 'web-2']) {
        const from = now - 1800 + step * 60;
        const version = service === 'checkout' && step >= 15 ? '2.0' : '1.9';
        const query = new URLSearchParams({
          service_name: service, version, host, region: 'eu',
        });
        pushes.push(() => send(url, `/api/v1/push?${query}`, pprof(stacksOf(service, version, host, step), { at: from }), headers));
      }
  while (pushes.length > 0) await Promise.all(pushes.splice(0, 8).map((push) => push()));
}

export const PROFILES = {
  base: pprof(stacksOf('checkout', '1.9', 'web-1', 0)),
  new: pprof(stacksOf('checkout', '2.0', 'web-1', 1)),
};
