// SPDX-License-Identifier: Apache-2.0
// One function: how much it takes over time, by version and by host, who calls it, what it calls, and
// which of its lines cost what.

import { useMemo, useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import { readProfile } from '../../flame/data/data';
import { foldedStacks } from '../../flame/data/folded';
import { shownName } from '../../flame/data/names';
import { formatPercent, formatValue } from '../../flame/data/units';
import type { PageProps } from '../app';
import { get, type CallersAnswer, type FunctionRow, type Point, type TimeSeries } from '../api';
import { rangeItems } from '../chart-menus';
import { askTop } from '../data/exact';
import { useLoad } from '../load';
import { useMarks } from '../data/marks';
import { WHOLE } from '../data/more';
import { Chart } from '../charts/chart';
import { CopyLink, Export } from '../parts/export';
import { Flame } from '../parts/flame';
import { Lines } from '../parts/lines';
import { Name, ShortName } from '../parts/name';
import { NamesSwitch } from '../controls/names';
import { QualityLine } from '../parts/quality';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go, namesParam, type Params } from '../route';
import { labelOf, parseQuery, withLabel, writeQuery, type Selection } from '../selection';
import { spread, type ChartPoint } from '../data/stack';
import { boundsOf, rangeFrom, rangeOf, rangeParams, stepOf, wider, type Bounds, type Range }
  from '../time';
import { formatRate, meaningOf, rates } from '../data/values';
import { versionName } from '../data/versions';

interface Asked {
  query: string;
  name: string;
  bounds: Bounds;
}

const serviceOf = (query: string): string => {
  const selection = parseQuery(query);
  return selection ? labelOf(selection, 'service_name') : '';
};

const times = ({ from, to }: Bounds) => ({ from: String(from), to: String(to) });

function useFunctionSeries({ query, name, bounds }: Asked, count: 'flat' | 'cum', group: string) {
  return useLoad(`${query} ${name} ${bounds.from} ${bounds.to} ${count} ${group}`, (signal) =>
    get<TimeSeries>('timeseries', {
      query, function: name, count, ...times(bounds), step: String(stepOf(bounds)),
      group_by: group === '' ? [] : [group], limit: '10000',
    }, signal));
}

function OverTime({ asked, onRange }: { asked: Asked; onRange: (bounds: Bounds) => void }) {
  const self = useFunctionSeries(asked, 'flat', '');
  const total = useFunctionSeries(asked, 'cum', '');
  const marks = useMarks(serviceOf(asked.query), asked.bounds);
  const step = stepOf(asked.bounds);
  const meaning = meaningOf(total.value?.type ?? '');
  // The parts of the stack: the function itself, and what it calls.
  const series = useMemo(() => {
    const even = (answer: TimeSeries | null) =>
      spread(rates(meaning, answer?.series[0]?.points ?? [], step), step);
    const own = new Map(even(self.value).map(([time, value]) => [time, value]));
    const all = even(total.value);
    return [
      { name: 'itself', points: all.map(([time, , covered]): ChartPoint =>
        [time, own.get(time) ?? 0, covered]) },
      { name: 'callees', points: all.map(([time, sum, covered]): ChartPoint =>
        [time, sum - (own.get(time) ?? 0), covered]) },
    ];
  }, [self.value, total.value]);
  return (
    <>
      <Progress loaded={total} />
      <Failure loaded={total.error ? total : self} />
      {self.value && total.value && <Chart label={`${meaning.words} over time`}
        title={meaning.words} series={series} bounds={asked.bounds} step={step}
        marks={marks}
        format={(value) => formatRate(meaning, value)}
        rangeItems={(dragged) => rangeItems(asked.query, dragged, onRange)}
        onOut={() => onRange(wider(asked.bounds))} />}
    </>
  );
}

// Where it is heavy: its part of what each value of a label uses.
function ByLabel({ asked, label, unit }: { asked: Asked; label: string; unit: string }) {
  const own = useFunctionSeries(asked, 'cum', label);
  const all = useLoad(`${asked.query} ${asked.bounds.from} ${asked.bounds.to} ${label}`, (signal) =>
    get<TimeSeries>('timeseries', {
      query: asked.query, ...times(asked.bounds), step: String(stepOf(asked.bounds)), group_by: [label], limit: '10000',
    }, signal));
  const sum = (points: Point[]) => points.reduce((total, [, value]) => total + value, 0);
  const whole = new Map((all.value?.series ?? []).map(({ labels, points }) =>
    [labels[label] ?? '', sum(points)]));
  const rows = (own.value?.series ?? [])
    .map(({ labels, points }) => ({ value: labels[label] ?? '', total: sum(points) }))
    .filter(({ value }) => value !== '')
    .sort((a, b) => b.total - a.total);
  if (rows.length === 0) return null;
  return (
    <section class="card">
      <h2>By {label}</h2>
      <table class="table plain">
        <thead><tr><th scope="col">{label}</th><th scope="col" class="number">Total</th>
          <th scope="col" class="number">% of {label === 'service_name' ? 'service' : label}</th></tr></thead>
        <tbody>
          {rows.slice(0, 20).map(({ value, total }) => (
            <tr key={value}>
              <th scope="row"><a href={address('/function', {
                query: writeQuery(withLabel(
                  parseQuery(asked.query) ?? { type: 'cpu', matchers: [] }, label, value)),
                name: asked.name, from: String(asked.bounds.from), to: String(asked.bounds.to),
              })} ><ShortName name={label === 'version' ? versionName(value) : value} /></a></th>
              <td class="number">{formatValue(total, unit)}</td>
              <td class="number">{formatPercent(total / (whole.get(value) ?? NaN))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Figures({ answer }: { answer: CallersAnswer }) {
  const figures: [string, number][] = [['Self', answer.flat], ['Total', answer.cum]];
  return (
    <dl class="figures">
      {figures.map(([title, value]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{formatPercent(value / answer.total)}
            <span class="quiet">{formatValue(value, answer.unit)}</span></dd>
        </div>
      ))}
    </dl>
  );
}

function Neighbours(props: { title: string; rows: FunctionRow[]; answer: CallersAnswer;
  link: (name: string) => string }) {
  const { title, rows, answer, link } = props;
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 ? <p class="quiet">None.</p> : (
        <table class="table plain">
          <thead><tr><th scope="col">Function</th><th scope="col" class="number">Total</th>
            <th scope="col" class="number">Share</th></tr></thead>
          <tbody>
            {rows.slice(0, 20).map((row) => (
              <tr key={`${row.function} ${row.binary} ${row.file}`}>
                <th scope="row" class="code">{row.function === ''
                  ? <span class="quiet">no caller</span>
                  : <a href={link(row.function)} title={shownName(row.function)}>
                    <Name name={row.function} /></a>}</th>
                <td class="number">{formatValue(row.cum, answer.unit)}</td>
                <td class="number">{formatPercent(row.cum / answer.cum)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

type Part = 'callee_tree' | 'caller_tree' | 'lines';
const PARTS: readonly (readonly [Part, string])[] = [
  ['callee_tree', 'Callees'], ['caller_tree', 'Callers'], ['lines', 'Lines'],
];

export function FunctionPage({ route }: PageProps) {
  const range = rangeFrom(route.params);
  const query = route.params.get('query') ?? 'cpu{}';
  const name = route.params.get('name') ?? '';
  const [moment, setMoment] = useState(() => Date.now() / 1000);
  const part = PARTS.find(([id]) => id === route.params.get('part'))?.[0] ?? 'callee_tree';
  const view = route.params.get('flame') ?? '';
  const bounds = useMemo(() => boundsOf(range, moment), [range.from, range.to, moment]);
  const asked = { query, name, bounds };
  const flameApp = useRef<FlameApp | null>(null);
  const answer = useLoad(name === '' ? null : `${query} ${name} ${bounds.from} ${bounds.to}`,
    (signal) => get<CallersAnswer>('callers', { query, function: name, ...times(bounds) }, signal));

  const here = (change: Params) => address('/function', {
    query, name, ...rangeParams(range), part: part === 'callee_tree' ? undefined : part, flame: view,
    ...namesParam(), ...change,
  });
  const show = (change: Params, replace = false) => go(here(change), replace);
  function change(selection: Selection, next: Range) {
    setMoment(Date.now() / 1000);
    show({ query: writeQuery(selection), from: undefined, to: undefined, ...rangeParams(next) });
  }
  const link = (other: string) =>
    address('/function', { query, name: other, ...rangeParams(range), ...namesParam() });
  const found = answer.value;

  return (
    <div class="page">
      <SelectionBar selection={parseQuery(query) ?? { type: 'cpu', matchers: [] }} range={range}
        bounds={bounds} onChange={change} />
      <div class="page-head">
        <h1 class="code function-name" title={shownName(name)}><Name name={name} /></h1>
        <span class="space" />
        <CopyLink link={here({ ...rangeOf(bounds) })} />
        <a class="button" href={address('/explore', { query, ...rangeParams(range), ...namesParam() })}>
          The whole flame graph</a>
      </div>
      {name === '' && <Nothing><p>No function selected. Choose one in a flame graph.</p></Nothing>}
      <Failure loaded={answer} />
      {found && <Figures answer={found} />}
      {name !== '' && answer.error?.status !== 404 && <OverTime asked={asked}
        onRange={(next) => change(parseQuery(query) ?? { type: 'cpu', matchers: [] }, rangeOf(next))} />}
      {found && <>
        <QualityLine sides={[{ quality: found.quality, bounds }]} />
        <div class="cards">
          <Neighbours title="Called by" rows={found.callers} answer={found} link={link} />
          <Neighbours title="Calls" rows={found.callees} answer={found} link={link} />
          {serviceOf(query) === '' && <ByLabel asked={asked} label="service_name" unit={found.unit} />}
          <ByLabel asked={asked} label="version" unit={found.unit} />
          <ByLabel asked={asked} label="pod" unit={found.unit} />
          <ByLabel asked={asked} label="host" unit={found.unit} />
        </div>
        <div class="tabs">
          <nav class="menu" aria-label="Views">
            {PARTS.map(([id, title]) => (
              <a key={id} href={here({ part: id === 'callee_tree' ? undefined : id, flame: undefined })}
                aria-current={part === id ? 'page' : undefined}>{title}</a>
            ))}
          </nav>
          <span class="space" />
          <NamesSwitch onChange={show} />
          {part !== 'lines' && <Export title={name} formats={['folded']}
            picture={() => flameApp.current?.picture()}
            make={async () => {
              const whole = await get<CallersAnswer>('callers', {
                query, function: name, ...times(bounds), ...WHOLE });
              return new Blob([foldedStacks(readProfile(whole[part]), 0)]);
            }} />}
        </div>
        {part === 'lines'
          ? <Lines query={query} bounds={bounds} name={name} link={link} />
          : <Flame key={part} data={found[part]} state={view}
            exact={askTop({ query, ...times(bounds) },
              { [part === 'callee_tree' ? 'below' : 'above']: name })}
            onState={(state, step) => show({ flame: state }, !step)}
            onOpenFunction={(other) => go(link(other))}
            onApp={(app) => { flameApp.current = app; }}
            more={async (_path, _again, signal) => (await get<CallersAnswer>('callers', {
              query, function: name, ...times(bounds), ...WHOLE,
            }, signal))[part]} />}
      </>}
    </div>
  );
}
