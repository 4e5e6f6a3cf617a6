// SPDX-License-Identifier: Apache-2.0
// Many series as the layers of one chart: the largest by themselves, the others together.

export interface ChartSeries {
  name: string;
  points: [number, number][]; // unix seconds, value
}

// As many as there are colours to tell them apart.
export const SERIES_MAX = 8;
const OTHERS = 'others';

const total = (series: ChartSeries) => series.points.reduce((sum, [, value]) => sum + value, 0);

// The largest first, and all that is beyond the last colour together.
export function largest(series: ChartSeries[]): ChartSeries[] {
  const sorted = [...series].sort((a, b) => total(b) - total(a));
  if (sorted.length <= SERIES_MAX) return sorted;
  const sums = new Map<number, number>();
  for (const { points } of sorted.slice(SERIES_MAX - 1))
    for (const [time, value] of points) sums.set(time, (sums.get(time) ?? 0) + value);
  const others = [...sums].sort(([a], [b]) => a - b);
  return [...sorted.slice(0, SERIES_MAX - 1), { name: OTHERS, points: others }];
}

interface Stacked {
  data: [number[], ...number[][]]; // sums of a series and all below it, and where the last one ends
  own: (number | null)[][]; // each series' own values
}

// Steps are drawn from one point to the next: the last one needs an end, too.
export function stack(series: ChartSeries[], step: number): Stacked {
  const times = [...new Set(series.flatMap(({ points }) => points.map(([time]) => time)))]
    .sort((a, b) => a - b);
  const own = series.map(({ points }) => {
    const at = new Map(points);
    return times.map((time) => at.get(time) ?? null);
  });
  const below = new Array<number>(times.length).fill(0);
  const sums = own.map((values) => values.map((value, i) => (below[i] += value ?? 0)));
  if (times.length > 0) {
    times.push(times[times.length - 1] + step);
    for (const values of sums) values.push(values[values.length - 1]);
  }
  return { data: [times, ...sums], own };
}

type Points = readonly (readonly [number, number])[];

// Somebody who looks once a minute has no point for every step of half a minute: what was found then
// stands for the steps until the next look, evenly, and a level for each of them. Without that, series
// that are looked at in turn make a comb of their sum, and one alone is as many times too high.
export function spread(points: Points, step: number, level: boolean): [number, number][] {
  const gaps = points.slice(1).map(([time], i) => Math.round((time - points[i][0]) / step))
    .sort((a, b) => a - b);
  const usual = Math.max(1, gaps[gaps.length >> 1] ?? 1);
  return points.flatMap(([time, value], i) => {
    const next = points[i + 1]?.[0] ?? Infinity;
    const count = Math.max(1, Math.min(usual, Math.round((next - time) / step)));
    return Array.from({ length: count }, (_, k): [number, number] =>
      [time + k * step, level ? value : value / usual]);
  });
}

export function meanOf(points: Points): number {
  return points.length === 0 ? 0 : points.reduce((sum, [, value]) => sum + value, 0) / points.length;
}

export function peakOf(points: Points): number {
  return points.reduce((most, [, value]) => Math.max(most, value), 0);
}

// The numbers of an axis, all with as many digits as the one that needs most; those with units are
// what they are.
export function evenDigits(values: readonly number[], format: (value: number) => string): string[] {
  const texts = values.map(format);
  if (texts.some((text) => !/^\d+(\.\d+)?$/.test(text))) return texts;
  const digits = Math.max(...texts.map((text) => (text.split('.')[1] ?? '').replace(/0+$/, '').length));
  return values.map((value, i) => (value === 0 ? texts[i] : value.toFixed(digits)));
}
