// SPDX-License-Identifier: Apache-2.0
// Views that follow the clock: how often they ask again, as the address has it, and when they wait
// because somebody is pointing at what would change.

import { useEffect, useState } from 'preact/hooks';
import { shortRange, type Range } from './time';

export const INTERVALS: readonly (readonly [id: string, title: string, seconds: number])[] = [
  ['off', 'Off', 0], ['10s', '10 s', 10], ['30s', '30 s', 30], ['1m', '1 min', 60],
];

export function intervalOf(params: URLSearchParams, usual: string): [id: string, seconds: number] {
  const wanted = params.get('refresh') ?? usual;
  const [id, , seconds] = INTERVALS.find(([name]) => name === wanted) ?? INTERVALS[0];
  return [id, seconds];
}

// A pointer that rests for longer than this on a row or a frame belongs to somebody who left.
const POINTING_MS = 15_000;
const HELD = '[data-hold], .flame-box';
let pointed = -Infinity;
if (typeof document !== 'undefined')
  for (const name of ['pointermove', 'pointerdown', 'keydown'])
    document.addEventListener(name, () => { pointed = performance.now(); }, { passive: true });

// Rows and frames don't move under the pointer, nor does an open menu lose what it is about.
function isHeld(): boolean {
  if (document.querySelector('details[open], dialog[open], [role="menu"]:not([hidden])')) return true;
  return performance.now() - pointed < POINTING_MS
    && [...document.querySelectorAll(HELD)].some((element) => element.matches(':hover'));
}

// The moment that "now" stands for in a view, in unix seconds, and a way to renew it. Every `seconds`
// it renews itself while the page is visible; 0 leaves it as it is.
export function useNow(seconds: number): [now: number, renew: () => void] {
  const [now, setNow] = useState(() => Date.now() / 1000);
  const renew = () => setNow(Date.now() / 1000);
  useEffect(() => {
    if (seconds === 0) return undefined;
    let due = performance.now() + seconds * 1000;
    const timer = setInterval(() => { // short, so that a view that was held follows soon after
      if (performance.now() < due || document.visibilityState !== 'visible' || isHeld()) return;
      due = performance.now() + seconds * 1000;
      renew();
    }, 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return [now, renew];
}

// Once for each load of the page, and only where the address names no range: chooses a short one when
// all data is recent. `times` are those of data that is shown.
let chosen = false;
export function useFirstMinutes(
  params: URLSearchParams, times: number[], now: number, choose: (range: Range) => void,
): void {
  const since = times.reduce((least, time) => Math.min(least, time), Infinity);
  useEffect(() => {
    if (params.has('from') || params.has('to')) chosen = true;
    if (chosen || since === Infinity) return;
    chosen = true;
    const range = shortRange(since, now);
    if (range) choose(range);
  }, [since]);
}
