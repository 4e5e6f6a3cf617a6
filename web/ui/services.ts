// SPDX-License-Identifier: Apache-2.0
// The services behind the series that a server answers with, and the top function of each.

import { useEffect, useState } from 'preact/hooks';
import { get, type TimeSeries, type TopAnswer } from './api';
import { Queue } from './load';
import type { Bounds } from './time';

export interface Service {
  name: string;
  total: number;
  points: [number, number][];
  versions: string[]; // the one that was seen last comes first
}

const NAMELESS = 'unknown_service';

export function servicesOf(answer: TimeSeries): Service[] {
  const services = new Map<string, Service & { last: Map<string, number>; sums: Map<number, number> }>();
  for (const { labels, points } of answer.series) {
    const name = labels.service_name ?? NAMELESS;
    const found = services.get(name)
      ?? { name, total: 0, points: [], versions: [], last: new Map(), sums: new Map() };
    for (const [time, value] of points) {
      found.sums.set(time, (found.sums.get(time) ?? 0) + value);
      found.total += value;
    }
    if (labels.version && points.length > 0)
      found.last.set(labels.version, points[points.length - 1][0]);
    services.set(name, found);
  }
  return [...services.values()].map(({ name, total, last, sums }) => ({
    name, total,
    points: [...sums].sort(([a], [b]) => a - b),
    versions: [...last].sort(([, a], [, b]) => b - a).map(([version]) => version),
  }));
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
