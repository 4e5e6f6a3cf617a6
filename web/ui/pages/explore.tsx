// SPDX-License-Identifier: Apache-2.0
// One selection over time: when it used how much, and where in the code. A region that is dragged on
// the chart becomes the time range of everything below it.

import { useMemo, useRef } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import { shownName } from '../../flame/names';
import type { PageProps } from '../app';
import { get, getBlob, type FlameAnswer, type TimeSeries } from '../api';
import { askTop } from '../exact';
import { together, useLoad } from '../load';
import { useMarks } from '../marks';
import { moreParams } from '../more';
import { Chart } from '../parts/chart';
import { CopyLink, Export } from '../parts/export';
import { FirstProfile } from '../parts/first';
import { Flame } from '../parts/flame';
import { Lines } from '../parts/lines';
import { NamesSwitch } from '../parts/names';
import { QualityLine } from '../parts/quality';
import { Raw } from '../parts/raw';
import { Refresh } from '../parts/refresh';
import { SelectionBar } from '../parts/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { TimeSteps } from '../parts/time-steps';
import { intervalOf, useNow } from '../refresh';
import { address, go, namesParam, type Params } from '../route';
import { labelOf, parseQuery, writeQuery, type Selection } from '../selection';
import { spread } from '../stack';
import { boundsOf, isRelative, rangeFrom, rangeOf, rangeParams, stepOf, wider, type Range }
  from '../time';
import { formatRate, meaningOf, rate, rates } from '../values';

const TABS: readonly (readonly [string, string])[] = [
  ['', 'Flame graph'], ['lines', 'Source lines'], ['raw', 'Raw'],
];
function seriesName(labels: Record<string, string>, group: string): string {
  return group === '' ? 'all' : shownName(labels[group] ?? `(no ${group})`);
}

// By any label that the selection has in the range.
function GroupPicker(props: { names: string[]; group: string; onChange: (group: string) => void }) {
  const { names, group, onChange } = props;
  const options = [...new Set([...(group === '' ? [] : [group]), ...names])]
    .filter((name) => !name.startsWith('__')).sort();
  return (
    <label class="inline">by <select class="button" aria-label="Group by" value={group}
      onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">nothing</option>
      {options.map((name) => <option key={name} value={name}>{name}</option>)}
    </select></label>
  );
}

// The label by which samples say what their thread did, and how many such states can be told apart.
const STATE = 'state';
const STATES_MAX = 16;

async function askStates(
  selection: Selection, times: { from: string; to: string }, signal: AbortSignal,
): Promise<[string, unknown][]> {
  const names = await get<string[]>(`label/${STATE}/values`, { query: writeQuery(selection), ...times }, signal);
  return Promise.all(names.slice(0, STATES_MAX).map(async (name): Promise<[string, unknown]> => {
    const query = writeQuery({ ...selection,
      matchers: [...selection.matchers, { name: STATE, operator: '=', value: name }] });
    return [name, (await get<FlameAnswer>('flame', { query, ...times }, signal)).flame];
  }));
}

export function Explore({ route }: PageProps) {
  const range = rangeFrom(route.params);
  const text = route.params.get('query') ?? 'cpu{}';
  const selection = parseQuery(text) ?? { type: 'cpu', matchers: [] };
  const service = labelOf(selection, 'service_name');
  const chosen = route.params.get('group');
  const group = chosen === '-' ? '' : chosen ?? (service ? '' : 'service_name');
  const tab = route.params.get('tab') ?? '';
  const view = route.params.get('flame') ?? '';
  const [interval, seconds] = intervalOf(route.params, 'off');
  const fixed = !isRelative(range);
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const flameApp = useRef<FlameApp | null>(null);
  const step = stepOf(bounds);
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const key = `${text} ${bounds.from} ${bounds.to}`;

  const points = useLoad(`${key} ${group}`, (signal) => get<TimeSeries>('timeseries', {
    query: text, ...times, step: String(step), group_by: group === '' ? [] : [group],
  }, signal));
  const flame = useLoad(key, (signal) => get<FlameAnswer>('flame', { query: text, ...times }, signal));
  const labels = useLoad(key, (signal) => get<string[]>('labels', { query: text, ...times }, signal));
  const pinned = rangeOf(bounds);

  const link = (change: Params) => address('/explore', {
    query: text, ...rangeParams(range), group: chosen ?? undefined, tab, flame: view,
    refresh: route.params.get('refresh') ?? undefined, ...namesParam(), ...change,
  });
  const show = (change: Params, replace = false) => go(link(change), replace);
  const select = (next: Selection) => show({ query: writeQuery(next) });
  const setRange = (next: Range) => {
    renew();
    show({ from: undefined, to: undefined, ...rangeParams(next) });
  };
  const functionLink = (name: string) =>
    address('/function', { query: text, name, ...rangeParams(range), ...namesParam() });

  const meaning = meaningOf(points.value?.type ?? '');
  const series = useMemo(() => (points.value?.series ?? []).map((one) => ({
    name: seriesName(one.labels, group),
    points: spread(rates(meaning, one.points, step), step),
  })), [points.value]);
  const variation = useMemo(() => points.value?.variation?.points
    .map(([time, low, high]): [number, number, number] => [
      time, rate(meaning, [time, low, low, 1], 1), rate(meaning, [time, high, high, 1], 1)]),
  [points.value]);
  const marks = useMarks(service, bounds);
  const empty = flame.value ? flame.value.quality.windows === 0 : flame.error?.status === 404;
  const answers = together(points, flame);

  return (
    <div class={answers.stale ? 'page explore stale' : 'page explore'} aria-busy={answers.stale}>
      <SelectionBar selection={selection} range={range} bounds={bounds}
        onChange={(next, nextRange) => nextRange === range ? select(next) : setRange(nextRange)}>
        <TimeSteps bounds={bounds} onChange={(next) => setRange(rangeOf(next))} />
        <Refresh interval={interval} answered={answers.answered} fixed={fixed} onRefresh={renew}
          onInterval={(id) => show({ refresh: id === 'off' ? undefined : id }, true)} />
      </SelectionBar>
      <Progress loaded={answers} />
      {answers.error && answers.error.status !== 404 && <Failure loaded={answers} />}
      {points.value && series.length > 0 && (
        <Chart label={`${meaning.words} over time`} title={meaning.words} series={series} bounds={bounds}
          step={step} format={(value) => formatRate(meaning, value)}
          variation={variation} marks={marks}
          onSelect={(next) => setRange(rangeOf(next))} onOut={() => setRange(rangeOf(wider(bounds)))}>
          <GroupPicker names={labels.value ?? []} group={group}
            onChange={(name) => show({ group: name || '-' })} />
        </Chart>
      )}
      {flame.value && !empty && <>
        <div class="tabs">
          <nav class="menu" aria-label="Views">
            {TABS.map(([id, title]) => (
              <a key={id} href={link({ tab: id })} aria-current={tab === id ? 'page' : undefined}>{title}</a>
            ))}
          </nav>
          <QualityLine quality={flame.value.quality} bounds={bounds} />
          <NamesSwitch onChange={show} />
          <a class="button" href={address('/compare', { query: text, ...pinned, ...namesParam() })}>Compare</a>
          <CopyLink link={link({ ...pinned })} />
          <Export title={service || 'assay'} picture={() => flameApp.current?.picture()}
            make={(format) => getBlob('profile', { query: text, ...times, format })} />
        </div>
        {tab === '' && <Flame data={flame.value.flame} state={view}
          onState={(state, isStep) => show({ flame: state }, !isStep)}
          onApp={(app) => { flameApp.current = app; }}
          onOpenFunction={(name) => go(functionLink(name))}
          onCompare={(name) => go(address('/compare', {
            query: text, ...pinned, ...namesParam(), flame: new URLSearchParams({ search: name }).toString(),
          }))}
          exact={askTop({ query: text, ...times })}
          more={async (path, again, signal) => (await get<FlameAnswer>('flame', {
            query: text, ...times, ...moreParams(path, again),
          }, signal)).flame}
          states={labels.value?.includes(STATE)
            ? (signal) => askStates(selection, times, signal) : undefined} />}
        {tab === 'lines' && <Lines query={text} bounds={bounds} link={functionLink} />}
        {tab === 'raw' && <Raw query={text} bounds={bounds} />}
      </>}
      {empty && (selection.matchers.length === 0
        ? <FirstProfile range={range} />
        : <Nothing><p>No data for this selection in this range. Choose a longer one, another type,
          or fewer labels.</p></Nothing>)}
    </div>
  );
}
