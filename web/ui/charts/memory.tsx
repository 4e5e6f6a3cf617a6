// SPDX-License-Identifier: Apache-2.0
// Memory of one service: its other views in one click, and all of its levels in one chart, so that
// what is resident beyond what the program holds is seen, beside the limit of its cgroup.

import { formatValue } from '../../flame/data/units';
import { ApiError, get, type ProfileType, type TimeSeries } from '../api';
import { useLoad } from '../load';
import { memoryLevels, memoryViews, type MemoryType } from '../data/memory';
import { writeQuery, type Selection } from '../selection';
import { spread, type ChartSeries } from '../data/stack';
import type { Bounds } from '../time';
import { Chart } from './chart';

interface Answer {
  views: MemoryType[];
  levels: ChartSeries[];
}

async function ask(selection: Selection, bounds: Bounds, step: number, signal: AbortSignal): Promise<Answer> {
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const types = await get<ProfileType[]>('types', {
    query: writeQuery({ type: '', matchers: selection.matchers }), ...times }, signal);
  const levels = await Promise.all(memoryLevels(types).map(async ({ id, words }): Promise<ChartSeries> => {
    try {
      const { series } = await get<TimeSeries>('timeseries', {
        query: writeQuery({ type: id, matchers: selection.matchers }), ...times, step: String(step),
      }, signal);
      return { name: words, points: spread((series[0]?.points ?? [])
        .map(([time, value, , covered]) => [time, value, covered]), step) };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      return { name: words, points: [] };
    }
  }));
  return { views: memoryViews(types), levels: levels.filter(({ points }) => points.length > 0) };
}

export function Memory(props: {
  selection: Selection; type: string; bounds: Bounds; step: number; link: (type: string) => string;
}) {
  const { selection, type, bounds, step, link } = props;
  const asked = writeQuery({ type: '', matchers: selection.matchers });
  const loaded = useLoad(`memory ${asked} ${bounds.from} ${bounds.to}`,
    (signal) => ask(selection, bounds, step, signal));
  if (!loaded.value) return null;
  const { views, levels } = loaded.value;
  return <>
    {views.length > 1 && (
      <div class="tabs"><nav class="menu" aria-label="Memory">
        {views.map(({ id, words }) => (
          <a key={id} href={link(id)} aria-current={id === type ? 'page' : undefined}>{words}</a>))}
      </nav></div>
    )}
    {levels.length > 1 && (
      <Chart label="Memory that is held, over time" title="Held" series={levels} bounds={bounds}
        step={step} apart format={(value) => formatValue(value, 'bytes')} />
    )}
  </>;
}
