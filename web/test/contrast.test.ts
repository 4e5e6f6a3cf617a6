// SPDX-License-Identifier: Apache-2.0
// The themes' colours by WCAG's measure: words stand out from what they stand on by 4.5 to 1, and
// what has to be seen without being read by 3 to 1.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { diffColour, DIFF_STEPS, stateColour } from '../flame/colour';

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = parseInt(colour.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

// The custom properties of a rule.
function themeOf(css: string, selector: string): Record<string, string> {
  const start = css.indexOf(`${selector} {`);
  assert.ok(start >= 0, `no rule ${selector}`);
  const body = css.slice(start, css.indexOf('}', start));
  return Object.fromEntries([...body.matchAll(/--([a-z-]+):\s*(#[0-9a-f]{6})\b/g)].map((m) => [m[1], m[2]]));
}

const read = (path: string) => readFileSync(`${process.env.WEB ?? '.'}/${path}`, 'utf8');

for (const [path, root] of [['ui/style.css', '.app'], ['flame/theme.css', '.flame']] as const) {
  const css = read(path);
  const light = themeOf(css, root);
  const dark = { ...light, ...themeOf(css, `${root}[data-theme="dark"]`) };
  for (const [name, theme] of [['light', light], ['dark', dark]] as const)
    test(`${path}, ${name}: words can be read`, () => {
      for (const ink of ['text', 'quiet', 'accent', 'wrong', 'doubt', 'grew', 'shrank'])
        for (const ground of ['page', 'panel'])
          if (theme[ink])
            assert.ok(contrast(theme[ink], theme[ground]) >= 4.5,
              `${ink} on ${ground}: ${contrast(theme[ink], theme[ground]).toFixed(2)}`);
      assert.ok(contrast(theme.accent, theme['accent-soft']) >= 4.5, 'a pressed button');
      assert.ok(contrast(theme.text, theme['accent-soft']) >= 4.5, 'a chosen row');
      assert.ok(contrast(theme.page, theme.accent) >= 4.5, 'the button that matters');
      if (theme.field) assert.ok(contrast(theme.field, theme.page) >= 3, 'the edge of a field');
    });
}

test('names can be read on frames of every state', () => {
  for (const dark of [false, true])
    for (const safe of [false, true])
      for (const state of ['RUNNABLE', 'SLEEPING', 'blocked', 'io', 'DefaultState', 'x', 'y', 'z'])
        assert.ok(contrast(stateColour(state, { dark, safe }), dark ? '#f1f3f5' : '#1b1f24') >= 4.5, state);
});

// What people without one kind of cone see of a colour, in linear RGB (Viénot, Brettel, Mollon 1999),
// as coordinates of OKLab.
const BLIND = {
  protan: [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
  deutan: [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
};

function seen(colour: string, matrix: number[][]): number[] {
  const linear = [1, 3, 5].map((i) => {
    const c = parseInt(colour.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const dot = (row: number[], v: number[]) => row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
  const rgb = matrix.map((row) => Math.max(0, dot(row, linear)));
  const lms = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005]].map((row) => Math.cbrt(dot(row, rgb)));
  return [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.808675766]].map((row) => dot(row, lms));
}

const apart = (a: string, b: string, matrix: number[][]) =>
  Math.hypot(...seen(a, matrix).map((value, i) => value - seen(b, matrix)[i]));

test('the safe palette is one: what differs is told apart without red or green cones', () => {
  for (const dark of [false, true])
    for (const [kind, matrix] of Object.entries(BLIND)) {
      const scheme = { dark, safe: true };
      const grown = diffColour(DIFF_STEPS, scheme), gone = diffColour(-DIFF_STEPS, scheme);
      assert.ok(apart(grown, gone, matrix) > 0.1, `${kind} ${dark} grown and gone`);
      const states = ['RUNNABLE', 'SLEEPING', 'BLOCKED'].map((state) => stateColour(state, scheme));
      assert.ok(apart(states[0], states[1], matrix) > 0.08, `${kind} ${dark} run and sleep`);
      assert.ok(apart(states[1], states[2], matrix) > 0.08, `${kind} ${dark} sleep and block`);
      assert.ok(apart(states[0], states[2], matrix) > 0.03, `${kind} ${dark} run and block`);
    }
});
