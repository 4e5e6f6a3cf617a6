// SPDX-License-Identifier: Apache-2.0
// The first graph of a page finds everything cold: code that never ran, fonts that were never
// measured, a canvas that was never made. That is half of what it takes, and can be done while the
// page waits for its profile.

import { mount } from './app';
import { readProfile } from './data/data';
import { make } from './dom';

const NODES = 400;
const FUNCTIONS = 40;

// A small graph with frames of all widths.
function sample(): unknown {
  const names = Array.from({ length: FUNCTIONS }, (_, i) => `example.org/part${i % 7}.(*Type${i}).Method`);
  const nodes = Array.from({ length: NODES }, (_, i) => i);
  return {
    version: 1,
    kind: 'flame',
    title: '',
    notes: [],
    types: [{ name: 'cpu', unit: 'nanoseconds' }],
    default_type: 0,
    strings: ['', ...names],
    functions: {
      name: names.map((_, i) => i + 1), file: names.map(() => 0), binary: names.map(() => 0),
    },
    // Some go on from the one before, and the others leave a stack some frames above.
    nodes: {
      up: nodes.map((i) => (i % 5 === 0 ? Math.min(i + 1, 1 + i % 17) : 1)),
      function: nodes.map((i) => (i * 7) % FUNCTIONS),
      inlined: [],
    },
    self: [[0, ...nodes.map((i) => 1e6 / (1 + i))]],
    dropped: 0,
  };
}

let done = false;

// Draws a graph that nobody sees, once, and leaves nothing of it: all within one task.
export function warmUp(): void {
  if (done) return;
  done = true;
  const box = make('div', { 'aria-hidden': 'true' });
  box.inert = true;
  box.style.cssText = 'position: fixed; inset: 0; visibility: hidden; pointer-events: none';
  document.body.append(box);
  const app = mount(box, readProfile(sample()), { keys: box });
  app.picture();
  app.destroy();
  box.remove();
  performance.mark('flame-warm');
}
