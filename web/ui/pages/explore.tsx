// SPDX-License-Identifier: Apache-2.0
// One selection over time: when it used how much, and where in the code. A region that is dragged on
// the chart becomes the page's time range, or that of everything below the chart.

import { useMemo, useRef } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import { splitOf } from '../../flame/state';
import { shownName } from '../../flame/data/names';
import type { PageProps } from '../app';
import { get, getBlob, type FlameAnswer, type TimeSeries } from '../api';
import { rangeItems, seriesItems } from '../chart-menus';
import { inMoney } from '../data/cost';
import { askTop } from '../data/exact';
import { together, useLoad } from '../load';
import { useMarks } from '../data/marks';
import { isMemory } from '../data/memory';
import { moreParams } from '../data/more';
import { Chart } from '../charts/chart';
import { CopyLink, Export, STACKS } from '../parts/export';
import { FirstProfile } from '../parts/first';
import { Flame } from '../parts/flame';
import { LabelGrid } from '../charts/label-grid';
import { Fold } from '../controls/fold';
import { Lines } from '../parts/lines';
import { Memory } from '../charts/memory';
import { NamesSwitch } from '../controls/names';
import { QualityLine } from '../parts/quality';
import { Raw } from '../parts/raw';
import { Refresh } from '../controls/refresh';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { TimeSteps } from '../controls/time-steps';
import { intervalOf, useNow } from '../refresh';
import { address, go, namesParam, type Params } from '../route';
import { labelOf, parseQuery, writeQuery, type Selection } from '../selection';
import { askStates, STATE } from '../data/states';
import { meanOver, spread } from '../data/stack';
import { boundsOf, isRelative, parseBounds, rangeFrom, rangeOf, rangeParams, stepOf, wider, writeBounds,
  type Bounds, type Range } from '../time';
import { formatRate, meaningOf, rate, rates } from '../data/values';

const TABS: readonly (readonly [string, string])[] = [
  ['', 'Flame graph'], ['who', 'By label'], ['lines', 'Source lines'], ['raw', 'Raw'],
];
function seriesName(labels: Record<string, string>, group: string): string {
  return group === '' ? 'all' : shownName(labels[group] ?? `(no ${group})`);
}

// The labels that tell values of a selection apart, those first that people ask for first.
const ASKED_FIRST = ['service_name', 'version', 'pod', 'host', 'region', 'namespace', 'container', 'thread', 'thread_name'];
function grouping(names: string[], selection: Selection): string[] {
  const rank = (name: string) => (ASKED_FIRST.indexOf(name) + ASKED_FIRST.length + 1) % (ASKED_FIRST.length + 1);
  return names.filter((name) => !name.startsWith('__') && labelOf(selection, name) === '')
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
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

export function Explore({ route }: PageProps) {
  const range = rangeFrom(route.params);
  const text = route.params.get('query') ?? 'cpu{}';
  const selection = parseQuery(text) ?? { type: 'cpu', matchers: [] };
  const service = labelOf(selection, 'service_name');
  const chosen = route.params.get('group');
  const group = chosen === '-' ? '' : chosen ?? (service ? '' : 'service_name');
  const tab = route.params.get('tab') ?? '';
  const view = route.params.get('flame') ?? '';
  const cost = route.params.get('unit') === 'cost';
  const [interval, seconds] = intervalOf(route.params, 'off');
  const fixed = !isRelative(range);
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const flameApp = useRef<FlameApp | null>(null);
  const step = stepOf(bounds);
  // The part of the chart that what is below it is of; all of it unless one was chosen.
  const part = useMemo(() => parseBounds(route.params.get('part')), [route.params.get('part')]);
  const shown = part ?? bounds;
  const times = { from: String(shown.from), to: String(shown.to) };
  const key = `${text} ${shown.from} ${shown.to}`;

  const points = useLoad(`${text} ${bounds.from} ${bounds.to} ${group}`, (signal) => get<TimeSeries>('timeseries', {
    query: text, from: String(bounds.from), to: String(bounds.to), step: String(step),
    group_by: group === '' ? [] : [group],
  }, signal));
  const split = splitOf(view) || undefined;
  const flame = useLoad(`${key} ${split}`, (signal) =>
    get<FlameAnswer>('flame', { query: text, ...times, split }, signal));
  const drawn = (answer: FlameAnswer) => cost ? inMoney(answer) : answer.flame;
  const shownFlame = useMemo(() => flame.value && drawn(flame.value), [flame.value, cost]);
  const labels = useLoad(key, (signal) => get<string[]>('labels', { query: text, ...times }, signal));
  const pinned = rangeOf(shown);

  const link = (change: Params) => address('/explore', {
    query: text, ...rangeParams(range), group: chosen ?? undefined, tab, flame: view,
    part: part ? writeBounds(part) : undefined, who: route.params.get('who') ?? undefined,
    sort: route.params.get('sort') ?? undefined,
    unit: cost ? 'cost' : undefined,
    refresh: route.params.get('refresh') ?? undefined, ...namesParam(), ...change,
  });
  const show = (change: Params, replace = false) => go(link(change), replace);
  const select = (next: Selection) => show({ query: writeQuery(next) });
  const setRange = (next: Range) => {
    renew();
    show({ from: undefined, to: undefined, part: undefined, ...rangeParams(next) });
  };
  const functionLink = (name: string) => address('/function', {
    query: text, name, ...(part ? pinned : rangeParams(range)), ...namesParam() });

  const meaning = meaningOf(points.value?.type ?? '');
  const series = useMemo(() => (points.value?.series ?? []).map((one) => {
    const values = rates(meaning, one.points, step);
    return { name: one.rest === undefined ? seriesName(one.labels, group) : `${one.rest} more`, mean: meanOver(values), points: spread(values, step) };
  }), [points.value]);
  const variation = useMemo(() => points.value?.variation?.points
    .map(([time, low, high]): [number, number, number] => [
      time, rate(meaning, [time, low, low, 1], 1), rate(meaning, [time, high, high, 1], 1)]),
  [points.value]);
  // Names on the page aren't the labels' values, which may be missing.
  const valueOf = useMemo(() => new Map((points.value?.series ?? []).filter(({ rest }) => rest === undefined).map(({ labels }) =>
    [seriesName(labels, group), labels[group] ?? ''])), [points.value]);
  const labelsToChoose = grouping(labels.value ?? [], selection);
  const who = route.params.get('who') ?? labelsToChoose[0] ?? 'service_name';
  const regions = part ? [{
    id: 'part', label: 'Shown below', bounds: part,
    onChange: (next: Bounds) => show({ part: writeBounds(next) }, true),
    onClose: () => show({ part: undefined }),
  }] : [];
  const marks = useMarks(service, bounds);
  const empty = flame.value ? flame.value.quality.windows === 0 : flame.error?.status === 404;
  const answers = together(points, flame);

  return (
    <div class={answers.stale ? 'page explore stale' : 'page explore'} aria-busy={answers.stale}>
      <h1 class="hidden">Explore</h1>
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
          rangeItems={(dragged) => rangeItems(text, dragged, (next) => setRange(rangeOf(next)),
            (next) => show({ part: writeBounds(next) }))}
          seriesItems={group === '' ? undefined : (name) =>
            valueOf.has(name) ? seriesItems(selection, group, valueOf.get(name) ?? '', bounds, select) : []}
          regions={regions} onOut={() => setRange(rangeOf(wider(bounds)))}>
          <GroupPicker names={labels.value ?? []} group={group}
            onChange={(name) => show({ group: name || '-' })} />
        </Chart>
      )}
      {points.value && isMemory(points.value.type) && <Memory selection={selection} type={points.value.type}
        bounds={bounds} step={step} link={(type) => link({ query: writeQuery({ ...selection, type }) })} />}
      {flame.value && !empty && <>
        <div class="tabs">
          <nav class="menu" aria-label="Views">
            {TABS.map(([id, title]) => (
              <a key={id} href={link({ tab: id })} aria-current={tab === id ? 'page' : undefined}>{title}</a>
            ))}
          </nav>
          <QualityLine sides={[{ quality: flame.value.quality, bounds: shown }]} />
          <Fold class="actions" label="Actions" summary="More">
          <NamesSwitch onChange={show} />
          {flame.value.price && <button type="button" class="button" aria-pressed={cost}
            title="Show the flame graph in money: CPU time by the price of a core-hour"
            onClick={() => show({ unit: cost ? undefined : 'cost' })}>Cost</button>}
          {service !== '' && <a class="button" href={address('/explain', {
            service, at: String(Math.round((shown.from + shown.to) / 2)) })}
            title="What rose in the middle of this range, and why">Explain</a>}
          <a class="button" href={address('/compare', { query: text, ...pinned, ...namesParam() })}>Compare</a>
          <CopyLink link={link({ ...pinned })} />
          <Export title={service || 'assay'} formats={STACKS} picture={() => flameApp.current?.picture()}
            make={(format) => getBlob('profile', { query: text, ...times, format })} />
          </Fold>
        </div>
        {tab === '' && <Flame data={shownFlame} state={view}
          onState={(state, isStep) => show({ flame: state }, !isStep)}
          onApp={(app) => { flameApp.current = app; }}
          onOpenFunction={(name) => go(functionLink(name))}
          onCompare={(name) => go(address('/compare', {
            query: text, ...pinned, ...namesParam(), flame: new URLSearchParams({ search: name }).toString(),
          }))}
          exact={askTop({ query: text, ...times })}
          more={async (path, again, signal) => drawn(await get<FlameAnswer>('flame', {
            query: text, ...times, split, ...moreParams(path, again),
          }, signal))}
          states={labels.value?.includes(STATE)
            ? (signal) => askStates(selection, times, split, signal) : undefined}
          splits={labelsToChoose} />}
        {tab === 'who' && <LabelGrid selection={selection} bounds={shown} label={who} labels={labelsToChoose}
          sort={route.params.get('sort') ?? ''} onLabel={(name) => show({ who: name })}
          onSort={(id) => show({ sort: id || undefined }, true)}
          link={(only) => link({ query: writeQuery(only), tab: undefined, who: undefined })} select={select} />}
        {tab === 'lines' && <Lines query={text} bounds={shown} link={functionLink} />}
        {tab === 'raw' && <Raw query={text} bounds={shown} />}
      </>}
      {empty && (selection.matchers.length === 0
        ? <FirstProfile range={range} />
        : <Nothing><p>No data for this selection in this range. Choose a longer one, another type,
          or fewer labels.</p></Nothing>)}
    </div>
  );
}
