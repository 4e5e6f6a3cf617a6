// SPDX-License-Identifier: Apache-2.0
// The fleet's functions: what each uses over all services that are selected, and how that has changed.
// Every number is the server's, from all stacks.

import { useMemo } from 'preact/hooks';
import { formatPercent, grouped } from '../../flame/units';
import type { PageProps } from '../app';
import { ApiError, get, type DiffAnswer, type Quality, type TopAnswer } from '../api';
import { useLoad } from '../load';
import { List, SearchField, type Column } from '../parts/list';
import { FirstProfile } from '../parts/first';
import { Name } from '../parts/name';
import { QualityLine } from '../parts/quality';
import { Refresh } from '../parts/refresh';
import { SelectionBar } from '../parts/selection-bar';
import { Failure, Progress } from '../parts/status';
import { intervalOf, useNow } from '../refresh';
import { address, go, namesParam, type Params } from '../route';
import { parseQuery, writeQuery } from '../selection';
import { before, boundsOf, isRelative, rangeFrom, rangeParams, type Bounds } from '../time';
import { formatRate, meaningOf, type Meaning } from '../values';

const ROWS_MAX = 1000;

const SINCE: readonly (readonly [id: string, title: string, seconds: number])[] = [
  ['previous', 'the previous period', 0], ['day', 'yesterday', 86400], ['week', 'last week', 604800],
];

interface Row {
  name: string;
  file: string;
  binary: string;
  self: number; // per covered second, as are all of these
  total: number;
  selfBefore: number | null; // null: there is nothing to compare with
  totalBefore: number | null;
}

interface Answer {
  rows: Row[];
  count: number; // of functions, of which rows are the first
  sum: number;
  type: string;
  quality: Quality;
  compared: boolean;
}

const SORTS: Record<string, string> = {
  name: 'name', self: 'new_flat', total: 'new_cum', change: 'flat', 'total-change': 'cum',
};
const TOP_SORTS: Record<string, string> = { name: 'name', self: 'flat', total: 'cum' };

// What a sum is divided by to be what charts show: cores, or a rate. Levels are averages already.
function divisor(type: string, { per_seconds, covered_seconds, duration_seconds }: Quality): number {
  const { level, unit } = meaningOf(type);
  if (level) return 1;
  return (per_seconds || covered_seconds || duration_seconds || 1) * (unit === 'nanoseconds' ? 1e9 : 1);
}

async function askCompared(params: Params, earlier: Bounds, sort: string, signal: AbortSignal): Promise<Answer> {
  const { functions, function_count: count, scale, type, new_total: total, new: { quality } } = await get<DiffAnswer>('diff', {
    ...params, base_from: String(earlier.from), base_to: String(earlier.to), normalize: 'duration', sort,
  }, signal);
  const by = divisor(type, quality);
  return {
    count, sum: total / by, type, quality, compared: true,
    rows: functions.map((row) => ({
      name: row.function, file: row.file, binary: row.binary,
      self: row.new_flat / by, total: row.new_cum / by,
      selfBefore: row.base_flat * scale / by, totalBefore: row.base_cum * scale / by,
    })),
  };
}

async function askAlone(params: Params, sort: string, signal: AbortSignal): Promise<Answer> {
  const { functions, function_count: count, total, type, quality } = await get<TopAnswer>('top', {
    ...params, sort,
  }, signal);
  const by = divisor(type, quality);
  return {
    count, sum: total / by, type, quality, compared: false,
    rows: functions.map(({ function: name, file, binary, flat, cum }) => ({
      name, file, binary, self: flat / by, total: cum / by, selfBefore: null, totalBefore: null,
    })),
  };
}

// Where there is nothing to compare with, what there is now is an answer, too.
async function ask(params: Params, earlier: Bounds, sort: string, signal: AbortSignal): Promise<Answer> {
  const id = sort.replace(/^-/, '');
  const ordered = { ...params, order: sort.startsWith('-') ? 'desc' : 'asc', limit: String(ROWS_MAX) };
  try {
    return await askCompared(ordered, earlier, SORTS[id] ?? 'new_flat', signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return askAlone(ordered, TOP_SORTS[id] ?? 'flat', signal);
  }
}

function Change({ meaning, now, earlier }: { meaning: Meaning; now: number; earlier: number | null }) {
  if (earlier === null) return null;
  const by = now - earlier;
  const sign = by > 0 ? '+' : by < 0 ? '−' : '';
  return <>{sign}{formatRate(meaning, Math.abs(by))}{' '}
    <span class="quiet">{earlier === 0 ? (by > 0 ? 'new' : '') : `${sign}${formatPercent(Math.abs(by) / earlier)}`}</span></>;
}

function columnsOf(meaning: Meaning, answer: Answer | null): Column<Row>[] {
  const unit = meaning.unit === 'nanoseconds' ? 'cores' : '';
  const share = (value: number) => answer && answer.sum > 0 ? formatPercent(value / answer.sum) : '';
  const columns: Column<Row>[] = [
    { id: 'name', title: 'Function', code: true, order: ({ name }) => name,
      cell: ({ name }) => <Name name={name} /> },
    { id: 'binary', title: 'Binary', minor: true,
      cell: ({ binary }) => <span class="quiet long-name" title={binary}>{binary.replace(/^.*\//, '')}</span> },
    { id: 'self', title: `Self ${unit}`.trim(), number: true, order: ({ self }) => self,
      cell: ({ self }) => <>{formatRate(meaning, self)} <span class="quiet">{share(self)}</span></> },
    { id: 'total', title: `Total ${unit}`.trim(), number: true, order: ({ total }) => total,
      cell: ({ total }) => <>{formatRate(meaning, total)} <span class="quiet">{share(total)}</span></> },
  ];
  if (!answer?.compared) return columns;
  return [...columns,
    { id: 'change', title: 'Change, self', number: true, order: ({ self, selfBefore }) => self - (selfBefore ?? 0),
      cell: ({ self, selfBefore }) => <Change meaning={meaning} now={self} earlier={selfBefore} /> },
    { id: 'total-change', title: 'Change, total', number: true, minor: true,
      order: ({ total, totalBefore }) => total - (totalBefore ?? 0),
      cell: ({ total, totalBefore }) => <Change meaning={meaning} now={total} earlier={totalBefore} /> },
  ];
}

const DEFAULT_SORT = '-self';

export function Functions({ route: { params } }: PageProps) {
  const range = rangeFrom(params);
  const text = params.get('query') ?? 'cpu{}';
  const selection = parseQuery(text) ?? { type: 'cpu', matchers: [] };
  const search = params.get('search') ?? '';
  const sort = params.get('sort') ?? DEFAULT_SORT;
  const page = Number(params.get('page') ?? '1') - 1 || 0;
  const [since, , back] = SINCE.find(([id]) => id === params.get('since')) ?? SINCE[0];
  const [interval, seconds] = intervalOf(params, 'off');
  const fixed = !isRelative(range);
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const earlier = before(bounds, back || undefined);
  const loaded = useLoad(`${text} ${bounds.from} ${bounds.to} ${since} ${search} ${sort}`, (signal) => ask({
    query: text, from: String(bounds.from), to: String(bounds.to), search: search || undefined,
  }, earlier, sort, signal));
  const answer = loaded.error?.status === 404 ? null : loaded.value;
  const meaning = meaningOf(answer?.type ?? '');
  const columns = useMemo(() => columnsOf(meaning, answer), [answer]);

  function show(change: Params, replace = false) {
    go(address('/functions', {
      query: text === 'cpu{}' ? undefined : text, ...rangeParams(range), search,
      since: since === SINCE[0][0] ? undefined : since, sort: sort === DEFAULT_SORT ? undefined : sort,
      refresh: params.get('refresh') ?? undefined, ...namesParam(), ...change,
    }), replace);
  }
  return (
    <div class="page">
      <h1 class="hidden">Functions</h1>
      <SelectionBar selection={selection} range={range} bounds={bounds} onChange={(next, nextRange) => {
        renew();
        show({ query: writeQuery(next), from: undefined, to: undefined, ...rangeParams(nextRange) });
      }}>
        <Refresh interval={interval} answered={loaded.answered} fixed={fixed} onRefresh={renew}
          onInterval={(id) => show({ refresh: id === 'off' ? undefined : id }, true)} />
      </SelectionBar>
      <div class="page-head">
        <SearchField label="Search functions" value={search} onChange={(next) => show({ search: next }, true)} />
        <label class="inline">Change since <select class="button whole" value={since}
          onChange={(event) => show({ since: event.currentTarget.value })}>
          {SINCE.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
        </select></label>
        {answer && <span class="quiet">{answer.count > answer.rows.length
          ? `${grouped(answer.rows.length)} of ${grouped(answer.count)}` : grouped(answer.count)} functions
          {answer.compared ? '' : '; no data to compare with'}</span>}
      </div>
      {answer && <QualityLine quality={answer.quality} bounds={bounds} />}
      <Progress loaded={loaded} />
      {loaded.error && loaded.error.status !== 404 && <Failure loaded={loaded} />}
      {loaded.error?.status === 404 && <FirstProfile range={range} />}
      {answer && answer.rows.length > 0 && (
        <div data-hold class={loaded.stale ? 'stale' : undefined} aria-busy={loaded.stale}>
          <List label="Functions" columns={columns} rows={answer.rows}
            keyOf={({ name, file, binary }) => `${name} ${file} ${binary}`}
            link={({ name }) => address('/function', { query: text, name, ...rangeParams(range), ...namesParam() })}
            sort={sort} onSort={(next) => show({ sort: next === DEFAULT_SORT ? undefined : next }, true)}
            page={page} onPage={(next) => show({ page: next === 0 ? undefined : String(next + 1) })} />
        </div>
      )}
      {answer && answer.rows.length === 0 && <div class="notice"><p>No function matches “{search}”.</p></div>}
    </div>
  );
}
