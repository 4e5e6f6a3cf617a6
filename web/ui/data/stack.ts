// SPDX-License-Identifier: Apache-2.0
// Many series as the layers of one chart: the largest by themselves, the others together.

// Unix seconds, value, and how many seconds of the step it covers: without that, all of it.
export type ChartPoint = [time: number, value: number, covered?: number];

export interface ChartSeries {
  name: string;
  mean?: number; // over its covered time, where points don't have that any more
  points: ChartPoint[];
}

// As many as there are colours to tell them apart.
export const SERIES_MAX = 8;
export const OTHERS = 'others';

const total = (series: ChartSeries) => series.points.reduce((sum, [, value]) => sum + value, 0);

// The largest first, and all that is beyond the last colour together.
export function largest(series: ChartSeries[]): ChartSeries[] {
  const sorted = [...series].sort((a, b) => total(b) - total(a));
  if (sorted.length <= SERIES_MAX) return sorted;
  const sums = new Map<number, number>();
  const covered = new Map<number, number>();
  for (const { points } of sorted.slice(SERIES_MAX - 1))
    for (const [time, value, seconds = Infinity] of points) {
      sums.set(time, (sums.get(time) ?? 0) + value);
      covered.set(time, Math.max(covered.get(time) ?? 0, seconds));
    }
  const others = [...sums].sort(([a], [b]) => a - b)
    .map(([time, sum]): ChartPoint => [time, sum, covered.get(time)]);
  return [...sorted.slice(0, SERIES_MAX - 1), { name: OTHERS, points: others, mean: meanOver(others) }];
}

interface Stacked {
  // Sums of a series and all below it; null where nothing is known until the next time.
  data: [number[], ...(number | null)[][]];
  own: (number | null)[][]; // each series' own values
}

// Less than this share of a step is drawn as what it is, and more as all of the step: a scrape of
// some seconds in every minute is no comb.
const SPARSE = 0.1;
const NARROWEST = 0.05;

// When what is known of a step ends.
function endsOf(series: ChartSeries[], step: number): Map<number, number> {
  const ends = new Map<number, number>();
  for (const { points } of series)
    for (const [time, , covered = step] of points) {
      const width = covered < SPARSE * step ? Math.max(covered, NARROWEST * step) : step;
      ends.set(time, Math.max(ends.get(time) ?? 0, time + width));
    }
  return ends;
}

// Steps are drawn from one time to the next, so gaps have times of their own, and the last step has
// an end. `apart`: not on top of each other.
export function stack(series: ChartSeries[], step: number, apart = false): Stacked {
  const ends = endsOf(series, step);
  const known = [...ends.keys()].sort((a, b) => a - b);
  const times: number[] = [];
  known.forEach((time, i) => {
    const end = ends.get(time) ?? time + step;
    times.push(time);
    if (i + 1 < known.length && known[i + 1] > end + step / 1000) times.push(end);
  });
  const own = series.map(({ points }) => {
    const at = new Map(points.map(([time, value]) => [time, value]));
    return times.map((time) => at.get(time) ?? null);
  });
  const below = new Array<number>(times.length).fill(0);
  const sums = own.map((values) => values.map((value, i): number | null =>
    apart ? value : ends.has(times[i]) ? (below[i] += value ?? 0) : null));
  if (times.length > 0) {
    times.push(ends.get(times[times.length - 1]) ?? times[times.length - 1] + step);
    for (const values of sums) values.push(values[values.length - 1]);
  }
  return { data: [times, ...sums], own };
}

type Points = readonly Readonly<ChartPoint>[];

// Somebody who looks once a minute has no point for every step of half a minute: what was found then
// stands for the steps until the next look. Without that, series that are looked at in turn make a
// comb of their sum.
export function spread(points: Points, step: number): ChartPoint[] {
  const gaps = points.slice(1).map(([time], i) => Math.round((time - points[i][0]) / step))
    .sort((a, b) => a - b);
  const usual = Math.max(1, gaps[gaps.length >> 1] ?? 1);
  return points.flatMap(([time, value, covered], i) => {
    const next = points[i + 1]?.[0] ?? Infinity;
    const count = Math.max(1, Math.min(usual, Math.round((next - time) / step)));
    return Array.from({ length: count }, (_, k): ChartPoint =>
      covered === undefined || count > 1 ? [time + k * step, value] : [time, value, covered]);
  });
}

export function meanOf(points: Points): number {
  return points.length === 0 ? 0 : points.reduce((sum, [, value]) => sum + value, 0) / points.length;
}

// Steps count as much as they cover; where nothing says how much that is, all count the same.
export function meanOver(points: Points): number {
  const covered = points.reduce((sum, [, , seconds = 0]) => sum + seconds, 0);
  const weight = (seconds = 0) => covered > 0 ? seconds / covered : 1 / points.length;
  return points.reduce((sum, [, value, seconds]) => sum + value * weight(seconds), 0);
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
