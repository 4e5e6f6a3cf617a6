// SPDX-License-Identifier: Apache-2.0
// The services behind the series that a server answers with, and the top function of each.

import { useEffect, useState } from 'preact/hooks';
import { get, type TimeSeries, type TopAnswer } from '../api';
import { Queue } from '../load';
import { meanOver, type ChartPoint } from './stack';
import type { Bounds } from '../time';
import { meaningOf, rates } from './values';

export interface Service {
  name: string;
  mean: number; // over its covered time
  points: ChartPoint[];
  versions: string[]; // the one that was seen last comes first
}

const NAMELESS = 'unknown_service';

// Series by service, and by service and version. Where one version follows another within a step, the
// sum of their rates is too much, so the server adds them up.
export function servicesOf(answer: TimeSeries, versions: TimeSeries): Service[] {
  const last = new Map<string, Map<string, number>>();
  for (const { labels, points } of versions.series) {
    if (!labels.version || points.length === 0) continue;
    const name = labels.service_name ?? NAMELESS;
    last.set(name, (last.get(name) ?? new Map<string, number>())
      .set(labels.version, points[points.length - 1][0]));
  }
  const meaning = meaningOf(answer.type);
  return answer.series.map(({ labels, points: values }) => {
    const name = labels.service_name ?? NAMELESS;
    const points = rates(meaning, values, answer.step_seconds);
    return {
      name, points, mean: meanOver(points),
      versions: [...last.get(name) ?? []].sort(([, a], [, b]) => b - a).map(([version]) => version),
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
