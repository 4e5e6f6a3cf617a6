// SPDX-License-Identifier: Apache-2.0
// Which services use a function, and how much over time: asked for by rows as they come into view,
// since each question goes through all stacks of the selection.

import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type TimeSeries } from '../api';
import { Queue } from '../load';
import { withLabel, writeQuery, type Selection } from '../selection';
import { meanOver, type ChartPoint } from '../data/stack';
import { stepOf, type Bounds } from '../time';
import { formatRate, meaningOf, rates, type Meaning } from '../data/values';
import { address, namesParam } from '../route';
import { rangeOf } from '../time';
import { ShortName } from './name';
import { Sparkline } from '../charts/sparkline';

const POINTS = 60;
const queue = new Queue(2);

export interface Uses {
  services: { name: string; mean: number }[]; // the largest first
  points: ChartPoint[]; // of all together
  meaning: Meaning;
}

export function usesOf(answer: TimeSeries): Uses {
  const meaning = meaningOf(answer.type);
  const sums = new Map<number, ChartPoint>();
  const services = answer.series.map(({ labels, points }) => {
    const values = rates(meaning, points, answer.step_seconds);
    for (const [time, value, covered = 0] of values) {
      const [, sum, seconds = 0] = sums.get(time) ?? [time, 0, 0];
      sums.set(time, [time, sum + value, Math.max(seconds, covered)]);
    }
    return { name: labels.service_name ?? '', mean: meanOver(values) };
  });
  return {
    meaning, points: [...sums.values()].sort(([a], [b]) => a - b),
    services: services.filter(({ mean }) => mean > 0).sort((a, b) => b.mean - a.mean),
  };
}

// Null until it is known, and where it can't be had.
export function useUses(selection: Selection, bounds: Bounds, name: string): [Uses | null, { current: HTMLElement | null }] {
  const [uses, setUses] = useState<Uses | null>(null);
  const place = useRef<HTMLElement | null>(null);
  const query = writeQuery(selection);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setUses(null);
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      observer.disconnect();
      void queue.run(async () => {
        if (signal.aborted) return;
        const answer = await get<TimeSeries>('timeseries', { query, function: name, count: 'cum', from: String(bounds.from),
          to: String(bounds.to), step: String(stepOf(bounds, POINTS)), group_by: ['service_name'],
          limit: '10000' }, signal);
        if (!signal.aborted) setUses(usesOf(answer));
      }).catch(() => undefined);
    });
    if (place.current) observer.observe(place.current);
    return () => {
      controller.abort();
      observer.disconnect();
    };
  }, [query, name, bounds.from, bounds.to]);
  return [uses, place];
}

// A line over time and the services, the largest by name.
export function UsesCell({ selection, bounds, name }: { selection: Selection; bounds: Bounds; name: string }) {
  const [uses, place] = useUses(selection, bounds, name);
  const [largest] = uses?.services ?? [];
  const link = (service: string) => address('/function', {
    query: writeQuery(withLabel(selection, 'service_name', service)), name, ...rangeOf(bounds), ...namesParam() });
  return (
    <span class="uses" ref={(element) => { place.current = element; }}>
      <Sparkline points={uses?.points ?? []} bounds={bounds} />
      {uses && largest && <span class="uses-names" title={uses.services.map(({ name: service, mean }) =>
        `${service} ${formatRate(uses.meaning, mean)}`).join('\n')}>
        <a href={link(largest.name)}><ShortName name={largest.name || '(no service)'} /></a>
        {uses.services.length > 1 && <span class="quiet"> +{uses.services.length - 1}</span>}</span>}
    </span>
  );
}
