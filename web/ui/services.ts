// SPDX-License-Identifier: Apache-2.0
// The services behind the series that a server answers with, and the top function of each.

import { useEffect, useState } from 'preact/hooks';
import { get, type TimeSeries, type TopAnswer } from './api';
import { Queue } from './load';
import type { ChartPoint } from './stack';
import type { Bounds } from './time';
import { meaningOf, rates } from './values';

export interface Service {
  name: string;
  mean: number; // over its covered time
  points: ChartPoint[];
  versions: string[]; // the one that was seen last comes first
}

const NAMELESS = 'unknown_service';

interface Found {
  last: Map<string, number>;
  sums: Map<number, ChartPoint>;
}

// The time that a step covers is the longest that one of its versions does.
function addPoint(sums: Map<number, ChartPoint>, [time, value, covered = 0]: ChartPoint) {
  const [, sum, seconds = 0] = sums.get(time) ?? [time, 0, 0];
  sums.set(time, [time, sum + value, Math.max(seconds, covered)]);
}

// Steps count as much as they cover; where nothing says how much that is, all count the same.
function meanOver(points: readonly ChartPoint[]): number {
  const covered = points.reduce((sum, [, , seconds = 0]) => sum + seconds, 0);
  const weight = (seconds = 0) => covered > 0 ? seconds / covered : 1 / points.length;
  return points.reduce((sum, [, value, seconds]) => sum + value * weight(seconds), 0);
}

export function servicesOf(answer: TimeSeries): Service[] {
  const services = new Map<string, Found>();
  const meaning = meaningOf(answer.type);
  for (const { labels, points } of answer.series) {
    const name = labels.service_name ?? NAMELESS;
    const found = services.get(name) ?? { last: new Map(), sums: new Map() };
    for (const point of rates(meaning, points, answer.step_seconds)) addPoint(found.sums, point);
    if (labels.version && points.length > 0)
      found.last.set(labels.version, points[points.length - 1][0]);
    services.set(name, found);
  }
  return [...services].map(([name, { last, sums }]) => {
    const points = [...sums.values()].sort(([a], [b]) => a - b);
    return {
      name, points, mean: meanOver(points),
      versions: [...last].sort(([, a], [, b]) => b - a).map(([version]) => version),
    };
  });
}

const queue = new Queue(3); // a browser has six connections to a server

// One after the other, as they come. What failed is just not there: the page has more to say.
export function useTops(queries: string[], bounds: Bounds): Map<string, TopAnswer> {
  const [tops, setTops] = useState(new Map<string, TopAnswer>());
  const key = [bounds.from, bounds.to, ...queries].join('\n');
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    for (const query of queries) {
      void queue.run(async () => {
        if (signal.aborted) return;
        const answer = await get<TopAnswer>('top', {
          query, from: String(bounds.from), to: String(bounds.to), limit: '1',
        }, signal);
        if (!signal.aborted) setTops((now) => new Map(now).set(query, answer));
      }).catch(() => undefined);
    }
    return () => controller.abort();
  }, [key]);
  return tops;
}
