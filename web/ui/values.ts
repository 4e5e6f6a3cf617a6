// SPDX-License-Identifier: Apache-2.0
// What a type's values mean over time: nanoseconds per second of CPU are cores, bytes allocated are
// a rate, bytes in use are a level.

import { formatValue } from '../flame/units';

export interface Meaning {
  unit: string; // of sums: "nanoseconds", "bytes", "count"
  level: boolean; // not a rate: what was in use
  words: string; // what a chart of it shows
}

export function meaningOf(type: string): Meaning {
  const [name = '', sampleType = '', unit = ''] = type.split(':');
  const level = /^(inuse|live|goroutine)/.test(sampleType) || /^goroutine/.test(name);
  const words = unit === 'nanoseconds'
    ? (/cpu/.test(name) && !/off/.test(name) ? 'CPU cores in use' : 'Seconds per second')
    : level ? 'In use' : unit === 'bytes' ? 'Bytes per second' : 'Per second';
  return { unit, level, words };
}

// From the sum over a step of a chart to what the chart shows.
export function rate(meaning: Meaning, sum: number, step: number): number {
  if (meaning.level) return sum;
  return meaning.unit === 'nanoseconds' ? sum / 1e9 / step : sum / step;
}

export function formatRate(meaning: Meaning, value: number): string {
  if (meaning.unit !== 'nanoseconds') return formatValue(value, meaning.unit) + (meaning.level ? '' : '/s');
  if (value === 0) return '0';
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  if (value >= 0.1) return value.toFixed(2);
  // Two digits that say something, however small it is; no exponents.
  if (value >= 0.01) return value.toFixed(3);
  return value.toFixed(Math.min(12, 1 - Math.floor(Math.log10(value))));
}
