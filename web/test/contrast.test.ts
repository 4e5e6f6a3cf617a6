// SPDX-License-Identifier: Apache-2.0
// The themes' colours by WCAG's measure: words stand out from what they stand on by 4.5 to 1, and
// what has to be seen without being read by 3 to 1.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { stateColour } from '../flame/colour';

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
