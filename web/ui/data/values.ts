// SPDX-License-Identifier: Apache-2.0
// What a type's values mean over time: nanoseconds per second of CPU are cores, bytes allocated are
// a rate, bytes in use are a level.

import { formatValue } from '../../flame/data/units';
import type { Point } from '../api';
import type { ChartPoint } from './stack';

export interface Meaning {
  unit: string; // of sums: "nanoseconds", "bytes", "count"
  level: boolean; // not a rate: what was in use
  words: string; // what a chart of it shows
}

export function meaningOf(type: string): Meaning {
  const [name = '', sampleType = '', unit = ''] = type.split(':');
  const level = /^(inuse_|live$|live_|goroutines?$|threads$|threadcreate$|rss$|rss_)/.test(sampleType);
  const words = unit === 'nanoseconds'
    ? (/cpu/.test(name) && !/off/.test(name) ? 'CPU cores in use' : 'Seconds per second')
    : level ? 'In use' : unit === 'bytes' ? 'Bytes per second' : 'Per second';
  return { unit, level, words };
}

// What a chart shows of a point: per covered second, or where that isn't known per second of the step.
export function rate(meaning: Meaning, [, value, perSecond]: Point, step: number): number {
  if (meaning.level) return value;
  return (perSecond ?? value / step) / (meaning.unit === 'nanoseconds' ? 1e9 : 1);
}

export function rates(meaning: Meaning, points: readonly Point[], step: number): ChartPoint[] {
  return points.map((point) => [point[0], rate(meaning, point, step), point[3]]);
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
