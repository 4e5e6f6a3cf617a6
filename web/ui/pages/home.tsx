// SPDX-License-Identifier: Apache-2.0
// The first page: every service, what it uses, and what of that is worth a look.

import { useMemo } from 'preact/hooks';
import { briefName, shownName } from '../../flame/data/names';
import { ShortName } from '../parts/name';
import { formatPercent, grouped } from '../../flame/data/units';
import type { PageProps } from '../app';
import { ApiError, get, type ProfileType, type TimeSeries, type TopAnswer } from '../api';
import { useLoad } from '../load';
import { Sparkline } from '../charts/sparkline';
import { FirstProfile } from '../parts/first';
import { List, PAGE_ROWS, SearchField, sorted, type Column } from '../parts/list';
import { RangePicker } from '../controls/range';
import { Refresh } from '../controls/refresh';
import { Failure, Progress } from '../parts/status';
import { intervalOf, useFirstMinutes, useNow } from '../refresh';
import { address, go, type Params } from '../route';
import { servicesOf, useTops, type Service } from '../data/services';
import { writeQuery } from '../selection';
import { boundsOf, isRelative, rangeFrom, rangeParams, stepOf, type Bounds } from '../time';
import { formatRate, meaningOf, type Meaning } from '../data/values';
import { versionName } from '../data/versions';

interface Answer {
  type: string; // as queries name it
  types: ProfileType[]; // to choose from; none while CPU time is there
  points: TimeSeries; // by service
  versions: TimeSeries; // by version, too, and coarser
}

// CPU time, or what there is instead: a fleet may send heap profiles only.
async function ask(wanted: string, bounds: Bounds, step: number, signal: AbortSignal): Promise<Answer> {
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const series = (type: string, seconds: number, ...labels: string[]) => get<TimeSeries>('timeseries', {
    query: `${type}{}`, ...times, step: String(seconds), group_by: ['service_name', ...labels], limit: '10000',
  }, signal);
  const both = async (type: string) => {
    const [points, versions] = await Promise.all([
      series(type, step), series(type, stepOf(bounds, 12), 'version')]);
    return { points, versions };
  };
  try {
    if (wanted === '') return { type: 'cpu', types: [], ...await both('cpu') };
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 400)) throw error;
  }
  const types = await get<ProfileType[]>('types', times, signal);
  const type = types.find(({ id }) => id === wanted)?.id
    ?? types.find(({ sample_unit }) => sample_unit === 'nanoseconds')?.id ?? types[0]?.id;
  if (type === undefined) throw new ApiError(404, 'not_found', 'No data in this range.');
  return { type, types, ...await both(type) };
}

interface Row extends Service {
  share: number;
  top: TopAnswer | null;
}

// As many characters of a function's name as the column has room for.
const NAME_MAX = 34;

const flatShare = ({ top }: Row) =>
  top?.functions[0] && top.total > 0 ? top.functions[0].flat / top.total : null;
const unnamed = ({ top }: Row) => top?.quality.unnamed_share ?? null;

function columnsOf(meaning: Meaning, bounds: Bounds): Column<Row>[] {
  return [
    { id: 'name', title: 'Service', order: ({ name }) => name,
      cell: ({ name }) => <span class="long-name"><ShortName name={name} /></span> },
    { id: 'time', title: 'Over time', quietTitle: true, minor: true,
      cell: ({ points }) => <Sparkline points={points} bounds={bounds} /> },
    { id: 'total', title: meaning.unit === 'nanoseconds' ? 'CPU cores' : meaning.words, number: true,
      order: ({ mean }) => mean, cell: ({ mean }) => formatRate(meaning, mean) },
    { id: 'share', title: 'Share', number: true, order: ({ share }) => share,
      cell: ({ share }) => <>
        <span class="share-bar"><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect height="4" width={100 * share} />
        </svg></span>{formatPercent(share)}</> },
    { id: 'top', title: 'Top function', code: true, minor: true, order: flatShare,
      cell: (row) => {
        const share = flatShare(row);
        const name = shownName(row.top?.functions[0]?.function ?? '');
        return share === null ? '' : <>
          <span class="quiet share-number">{formatPercent(share)}</span>{' '}
          <bdi title={name}>{briefName(name, NAME_MAX)}</bdi></>;
      } },
    { id: 'version', title: 'Version', minor: true, order: ({ versions }) => versions[0] ?? null,
      cell: ({ versions }) => <span class="long-name" title={versions.join(', ')}>{versionName(versions[0] ?? '')}
        {versions.length > 1 && <span class="quiet"> +{versions.length - 1}</span>}</span> },
    { id: 'unnamed', title: 'Unnamed', number: true, minor: true, order: unnamed,
      cell: (row) => {
        const share = unnamed(row);
        return share === null ? '' : <span class={share > 0.05 ? 'doubt' : undefined}>{formatPercent(share)}</span>;
      } },
  ];
}

const DEFAULT_SORT = '-total';

export function Home({ route: { params } }: PageProps) {
  const range = rangeFrom(params);
  const search = params.get('search') ?? '';
  const sort = params.get('sort') ?? DEFAULT_SORT;
  const wanted = params.get('type') ?? '';
  const page = Number(params.get('page') ?? '1') - 1 || 0;
  const [interval, seconds] = intervalOf(params, 'off');
  const fixed = !isRelative(range);
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const step = stepOf(bounds, 60);
  const loaded = useLoad(`${wanted} ${bounds.from} ${bounds.to}`,
    (signal) => ask(wanted, bounds, step, signal));
  const answer = loaded.error?.status === 404 ? null : loaded.value;
  const services = useMemo(() => answer ? servicesOf(answer.points, answer.versions) : [], [answer]);
  const meaning = meaningOf(answer?.points.type ?? '');
  const columns = useMemo(() => columnsOf(meaning, bounds), [answer, bounds]);
  const all = services.reduce((sum, { mean }) => sum + mean, 0);
  const found = services.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()));
  const queryOf = ({ name }: Service) => writeQuery({
    type: answer?.type ?? 'cpu', matchers: [{ name: 'service_name', operator: '=', value: name }],
  });

  // Top functions cost the server a merge each: asked for what is on the page, or for all where
  // that is what is sorted by.
  const byTop = /^-?(top|unnamed)$/.test(sort);
  const bare = found.map((service): Row => ({
    ...service, top: null, share: all > 0 ? service.mean / all : 0 }));
  const ordered = sorted(bare, columns, sort);
  const tops = useTops((byTop ? ordered : ordered.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS))
    .map(queryOf), bounds);
  const withTops = ordered.map((row) => ({ ...row, top: tops.get(queryOf(row)) ?? null }));
  const rows = byTop ? sorted(withTops, columns, sort) : withTops;

  function show(change: Params, replace = false) {
    go(address('/', { ...rangeParams(range), search, type: wanted,
      sort: sort === DEFAULT_SORT ? undefined : sort, refresh: params.get('refresh') ?? undefined,
      ...change }), replace);
  }
  useFirstMinutes(params, services.flatMap(({ points }) => points.slice(0, 1).map(([time]) => time)), asked,
    (next) => show(rangeParams(next), true));
  const empty = !loaded.loading && services.length === 0
    && (loaded.value !== null || loaded.error?.status === 404);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Services</h1>
        <SearchField label="Search services" value={search}
          onChange={(text) => show({ search: text }, true)} />
        {answer && answer.types.length > 1 && (
          <select class="button" aria-label="Profile type" value={answer.type}
            onChange={(event) => show({ type: event.currentTarget.value })}>
            {answer.types.map(({ id, name, sample_type }) => (
              <option key={id} value={id}>{name} {sample_type}</option>))}
          </select>
        )}
        {services.length > 0 && <span class="quiet">{grouped(services.length)}{' '}
          {services.length === 1 ? 'service' : 'services'}, together {formatRate(meaning, all)}
          {meaning.unit === 'nanoseconds' ? ' cores' : ''}</span>}
        <span class="space" />
        {services.length > 0 && <a class="button" href={address('/functions', { since: 'day', sort: '-change',
          ...rangeParams(range) })}>What changed since yesterday</a>}
        <Refresh interval={interval} answered={loaded.answered} fixed={fixed} onRefresh={renew}
          onInterval={(id) => show({ refresh: id === 'off' ? undefined : id }, true)} />
        <RangePicker range={range} onChange={(next) => {
          renew();
          show({ from: undefined, to: undefined, ...rangeParams(next) });
        }} />
      </div>
      <Progress loaded={loaded} />
      {empty ? <FirstProfile range={range} /> : <>
        {loaded.error?.status !== 404 && <Failure loaded={loaded} />}
        <div data-hold class={loaded.stale ? 'stale' : undefined} aria-busy={loaded.stale}>
        {rows.length > 0 && <List label="Services" columns={columns} rows={rows}
          keyOf={({ name }) => name} link={(row) => address('/explore', { query: queryOf(row), ...rangeParams(range) })}
          sort={sort} onSort={(next) => show({ sort: next === DEFAULT_SORT ? undefined : next }, true)}
          page={page} onPage={(next) => show({ page: next === 0 ? undefined : String(next + 1) })} />}
        </div>
        {services.length > 0 && rows.length === 0
          && <div class="notice"><p>No service's name holds “{search}”.</p></div>}
      </>}
    </div>
  );
}
