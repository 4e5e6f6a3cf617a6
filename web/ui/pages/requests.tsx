// SPDX-License-Identifier: Apache-2.0
// Why are these requests slow? Routes and their durations, a band of them, and what its requests do that
// faster ones don't.

import { useMemo, useState } from 'preact/hooks';
import { readProfile } from '../../flame/data/data';
import { formatPercent, formatValue, grouped } from '../../flame/data/units';
import type { PageProps } from '../app';
import { get } from '../api';
import { Durations } from '../charts/durations';
import { RangePicker } from '../controls/range';
import { Refresh } from '../controls/refresh';
import { bandOf, BANDS, differences, fasterThan, selectorOf, type RequestsAnswer, type RequestsFlame, type RouteRow }
  from '../data/requests';
import { useLoad } from '../load';
import { Flame } from '../parts/flame';
import { List, sorted, type Column } from '../parts/list';
import { Name, ShortName } from '../parts/name';
import { Failure, Nothing, Progress } from '../parts/status';
import { intervalOf, useNow } from '../refresh';
import { address, go, namesParam, type Params } from '../route';
import { boundsOf, isRelative, rangeFrom, rangeParams } from '../time';

const TYPES: readonly (readonly [type: string, title: string])[] = [['wall', 'Wall time'], ['cpu', 'CPU time']];
const duration = (ns: number) => formatValue(ns, 'nanoseconds');

const COLUMNS: Column<RouteRow>[] = [
  { id: 'route', title: 'Route', order: ({ route }) => route,
    cell: ({ method, route }) => <Name name={`${method} ${route || '(no route)'}`.trim()} /> },
  { id: 'service', title: 'Service', order: ({ service }) => service, cell: ({ service }) => <ShortName name={service} /> },
  { id: 'rate', title: 'Per second', number: true, order: ({ per_second: rate }) => rate,
    cell: ({ per_second: rate }) => formatValue(rate, 'count') },
  { id: 'errors', title: 'Errors', number: true, order: ({ errors, requests }) => errors / requests,
    cell: ({ errors, requests }) => <span class={errors > 0 ? 'doubt' : undefined}>{formatPercent(errors / requests)}</span> },
  { id: 'mean', title: 'Mean', number: true, minor: true, order: ({ mean }) => mean, cell: ({ mean }) => duration(mean) },
  { id: 'p50', title: 'p50', number: true, minor: true, order: ({ p50 }) => p50, cell: ({ p50 }) => duration(p50) },
  { id: 'p90', title: 'p90', number: true, minor: true, order: ({ p90 }) => p90, cell: ({ p90 }) => duration(p90) },
  { id: 'p99', title: 'p99', number: true, order: ({ p99 }) => p99, cell: ({ p99 }) => duration(p99) },
  { id: 'max', title: 'Max', number: true, minor: true, order: ({ max }) => max, cell: ({ max }) => duration(max) },
];

function Evidence({ title, side }: { title: string; side: RequestsFlame['evidence']['selected'] }) {
  return <span class="fact">{title}: {grouped(side.requests)} requests, {grouped(side.with_samples)} of them
    with {grouped(side.samples)} samples</span>;
}

// What a request of the band spends more on than one that was faster.
function More({ slow, rest, link }: { slow: RequestsFlame; rest: RequestsFlame; link: (name: string) => string }) {
  const rows = useMemo(() => differences(readProfile(slow.flame), readProfile(rest.flame)), [slow, rest]);
  const each = slow.evidence.selected.requests > 0 && rest.evidence.selected.requests > 0;
  if (!each || rows.length === 0)
    return <p class="quiet table-end">The samples show no function that selected requests spend more time in.</p>;
  return (
    <table class="table plain" aria-label="Functions with more time in selected requests">
      <thead><tr><th scope="col">Function, self time per request</th><th scope="col" class="number">Selected</th>
        <th scope="col" class="number">Faster</th><th scope="col" class="number">Difference</th></tr></thead>
      <tbody>
        {rows.map(({ name, slow: now, rest: before }) => (
          <tr key={name}>
            <th scope="row" class="code"><a href={link(name.split(' [')[0])}><Name name={name} /></a></th>
            <td class="number">{duration(now)}</td><td class="number">{duration(before)}</td>
            <td class="number grew">+{duration(now - before)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Requests({ route }: PageProps) {
  const { params } = route;
  const range = rangeFrom(params);
  const query = params.get('query') ?? '';
  const band = params.get('band') ?? '';
  const type = TYPES.find(([id]) => id === params.get('type'))?.[0] ?? TYPES[0][0];
  const sort = params.get('sort') ?? '-p99';
  const view = params.get('flame') ?? '';
  const fixed = !isRelative(range);
  const [interval, seconds] = intervalOf(params, 'off');
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const [typed, setTyped] = useState<string | null>(null);
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const key = `${query} ${bounds.from} ${bounds.to}`;
  const requests = useLoad(`requests ${key}`, (signal) =>
    get<RequestsAnswer>('requests', { query, ...times, limit: '500' }, signal));
  const one = query !== '';
  const ask = (of: string, signal: AbortSignal) =>
    get<RequestsFlame>('requests/flame', { query, ...times, band: of, type, per: 'request' }, signal);
  const flame = useLoad(one ? `band ${key} ${band} ${type}` : null, (signal) => ask(band, signal));
  const faster = fasterThan(band);
  const rest = useLoad(one && band !== '' ? `faster ${key} ${faster} ${type}` : null, (signal) => ask(faster, signal));
  const here = (change: Params) => address('/requests', {
    query, ...rangeParams(range), band: band || undefined, type: type === TYPES[0][0] ? undefined : type,
    sort: sort === '-p99' ? undefined : sort, flame: view,
    refresh: params.get('refresh') ?? undefined, ...namesParam(), ...change });
  const show = (change: Params, replace = false) => go(here(change), replace);
  const functionLink = (name: string) => address('/function', {
    query: `${type}{}`, name, ...rangeParams(range), ...namesParam() });
  const found = requests.value;
  const chosen = flame.value?.evidence.band;
  const select = (text: string) => show({ query: text.trim() || undefined, band: undefined, flame: undefined });
  return (
    <div class={requests.stale ? 'page stale' : 'page'} aria-busy={requests.stale}>
      <div class="page-head">
        <h1>Requests</h1>
        <form class="inline" onSubmit={(event) => {
          event.preventDefault();
          if (typed !== null) select(typed);
          setTyped(null);
        }}>
          <input class="field code request-query" aria-label="Selector of requests" spellcheck={false} autocomplete="off"
            placeholder={'service="shop",route="/order/{id}"'} value={typed ?? query}
            onInput={(event) => setTyped(event.currentTarget.value)} />
        </form>
        {one && <button type="button" class="button" onClick={() => select('')}>All routes</button>}
        {found && <span class="quiet">{grouped(found.requests)} requests, {formatValue(found.per_second, 'count')} per
          second, {formatPercent(found.requests > 0 ? found.errors / found.requests : 0)} errors</span>}
        <span class="space" />
        <Refresh interval={interval} answered={requests.answered} fixed={fixed} onRefresh={renew}
          onInterval={(id) => show({ refresh: id === 'off' ? undefined : id }, true)} />
        <RangePicker range={range} onChange={(next) => show({ from: undefined, to: undefined, ...rangeParams(next) })} />
      </div>
      <Progress loaded={requests} />
      <Failure loaded={requests} />
      {found && found.requests === 0 && <Nothing><p>No requests of this selection in this range. OpenTelemetry SDKs and
        Collectors send spans to <code>/v1/traces</code>.</p></Nothing>}
      {found && found.requests > 0 && <>
        {one && <Durations steps={found.histogram}
          chosen={band !== '' && chosen ? { from: chosen.from, to: chosen.to ?? found.max } : null}
          onBand={(from, to) => show({ band: bandOf(from, to), flame: undefined })} />}
        {!one && <List label="Routes" rows={sorted(found.routes, COLUMNS, sort)} columns={COLUMNS}
          keyOf={(row) => selectorOf(row)} sort={sort} onSort={(next) => show({ sort: next }, true)}
          link={(row) => here({ query: selectorOf(row), sort: undefined })} />}
        {!one && found.route_count > found.routes.length && <p class="table-end quiet">
          {grouped(found.routes.length)} of {grouped(found.route_count)} routes.</p>}
      </>}
      {one && found && found.requests > 0 && <>
        <div class="page-head">
          <div class="group" role="group" aria-label="Requests">
            {BANDS.map(([id, title]) => <button key={id} type="button" class="button" aria-pressed={band === id}
              onClick={() => show({ band: id || undefined, flame: undefined })}>{title}</button>)}
          </div>
          {band !== '' && !BANDS.some(([id]) => id === band) && <span class="quiet">from {duration(chosen?.from ?? 0)}
            {chosen?.to ? ` to ${duration(chosen.to)}` : ''}</span>}
          <span class="space" />
          <div class="group" role="group" aria-label="Time">
            {TYPES.map(([id, title]) => <button key={id} type="button" class="button" aria-pressed={type === id}
              onClick={() => show({ type: id, flame: undefined })}>{title}</button>)}
          </div>
        </div>
        {!requests.error && <Failure loaded={flame} />}
        {flame.value && <>
          <p class="quality"><Evidence title="Selected" side={flame.value.evidence.selected} />
            {band !== '' && rest.value && <> · <Evidence title="Faster" side={rest.value.evidence.selected} /></>}
            {' · '}{flame.value.evidence.note}</p>
          {band !== '' && rest.value && <More slow={flame.value} rest={rest.value} link={functionLink} />}
          {flame.value.evidence.selected.samples === 0
            ? <Nothing><p>No sample of this type names a span of these requests.</p></Nothing>
            : <Flame data={flame.value.flame} state={view} onState={(state, step) => show({ flame: state }, !step)}
              onOpenFunction={(name) => go(functionLink(name))} />}
        </>}
      </>}
    </div>
  );
}
