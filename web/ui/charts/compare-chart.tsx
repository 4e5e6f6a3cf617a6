// SPDX-License-Identifier: Apache-2.0
// The two ranges of a comparison on one chart, where both can be dragged.

import { useMemo, useRef } from 'preact/hooks';
import { ApiError, get, type Point, type TimeSeries } from '../api';
import { useLoad } from '../load';
import { meanOver, spread } from '../data/stack';
import { stepOf, type Bounds } from '../time';
import { formatRate, meaningOf, rates } from '../data/values';
import { Chart } from './chart';

export interface ChartSide {
  text: string; // its query
  bounds: Bounds;
}

// A range is this part of the chart at least when the chart is chosen for it.
const LEAST_PART = 6;
const PADDING = 0.05;

// What a chart of both ranges shows: the one before while both are in it, so that nothing jumps.
export function chartOf(base: Bounds, side: Bounds, before: Bounds | null, now: number): Bounds {
  const from = Math.min(base.from, side.from);
  const to = Math.max(base.to, side.to);
  if (before && from >= before.from && to <= before.to && (to - from) * LEAST_PART >= before.to - before.from)
    return before;
  const more = (to - from) * PADDING;
  return { from: Math.floor(from - more), to: Math.ceil(Math.max(to, Math.min(to + more, now))) };
}

const EMPTY: TimeSeries = { series: [], step_seconds: 1, type: '', quality: null as unknown as TimeSeries['quality'] };

export interface CompareChartProps {
  base: ChartSide;
  side: ChartSide;
  onBase: (bounds: Bounds) => void;
  onSide: (bounds: Bounds) => void;
}

export function CompareChart({ base, side, onBase, onSide }: CompareChartProps) {
  const held = useRef<Bounds | null>(null);
  const bounds = held.current = chartOf(base.bounds, side.bounds, held.current, Date.now() / 1000);
  const step = stepOf(bounds);
  const one = base.text === side.text;
  const loaded = useLoad(`${base.text} ${side.text} ${bounds.from} ${bounds.to}`, (signal) =>
    Promise.all((one ? [side] : [side, base]).map(({ text }) => get<TimeSeries>('timeseries', {
      query: text, from: String(bounds.from), to: String(bounds.to), step: String(step),
    }, signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return EMPTY;
      throw error;
    }))));
  const meaning = meaningOf(loaded.value?.find(({ type }) => type !== '')?.type ?? '');
  const series = useMemo(() => (loaded.value ?? []).map((answer, i) => {
    const points: readonly Point[] = answer.series[0]?.points ?? [];
    const values = rates(meaning, points, answer.step_seconds);
    return { name: i === 0 ? 'After' : 'Before', mean: meanOver(values), points: spread(values, answer.step_seconds) };
  }), [loaded.value]);
  if (!series.some(({ points }) => points.length > 0)) return null;
  return (
    <Chart label={`${meaning.words} over time`} title={meaning.words} series={series} bounds={bounds} step={step}
      height={96} apart={!one} format={(value) => formatRate(meaning, value)}
      regions={[
        { id: 'base', label: 'Before', bounds: base.bounds, onChange: onBase },
        { id: 'side', label: 'After', bounds: side.bounds, onChange: onSide },
      ]}
      rangeItems={(dragged) => [
        { label: 'Use as Before', run: () => onBase(dragged) },
        { label: 'Use as After', run: () => onSide(dragged) },
      ]} />
  );
}
