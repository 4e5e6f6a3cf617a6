// SPDX-License-Identifier: Apache-2.0
// The fleet's functions, packages or binaries: what each uses over all services that are selected, which
// services those are, and how that has changed.
// Every number is the server's, from all stacks.

import { useMemo } from 'preact/hooks';
import { formatPercent, grouped } from '../../flame/data/units';
import type { PageProps } from '../app';
import { ApiError, get, type DiffAnswer, type Quality, type TopAnswer } from '../api';
import { useLoad } from '../load';
import { List, SearchField, type Column } from '../parts/list';
import { FirstProfile } from '../parts/first';
import { Name } from '../parts/name';
import { QualityLine } from '../parts/quality';
import { Refresh } from '../controls/refresh';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Progress } from '../parts/status';
import { UsesCell } from '../parts/uses';
import { intervalOf, useNow } from '../refresh';
import { address, go, namesParam, type Params } from '../route';
import { labelOf, parseQuery, withLabel, writeQuery, type Selection } from '../selection';
import { before, boundsOf, isRelative, rangeFrom, rangeParams, type Bounds } from '../time';
import { stepOfVersions, versionName } from '../data/versions';
import { formatRate, meaningOf, type Meaning } from '../data/values';

const ROWS_MAX = 1000;

const SINCE: readonly (readonly [id: string, title: string, seconds: number])[] = [
  ['previous', 'the previous period', 0], ['day', 'yesterday', 86400], ['week', 'last week', 604800],
  ['version', 'the previous version', 0],
];

// What a row is, and what it is called.
const ROWS: readonly (readonly [id: string, title: string, one: string, many: string])[] = [
  ['function', 'Functions', 'Function', 'functions'], ['package', 'Packages', 'Package', 'packages'],
  ['binary', 'Binaries', 'Binary', 'binaries'],
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
  versions: string; // which are compared, if they are
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

// What the base differs in: its time, or its version, too.
interface Base {
  change: Params; // of what is selected
  params: Params;
  versions: string;
}

const at = ({ from, to }: Bounds): Params => ({ base_from: String(from), base_to: String(to) });

// The version that is selected, or the last, against the one before it, each in the time in which it ran.
async function versionBase(selection: Selection, bounds: Bounds, signal: AbortSignal): Promise<Base | null> {
  const [now, earlier] = await stepOfVersions(selection, bounds, signal);
  if (!now || !earlier) return null;
  const of = (name: string) => writeQuery(withLabel(selection, 'version', name));
  return {
    change: { query: of(now.name), from: String(now.bounds.from), to: String(now.bounds.to + 1) },
    params: { base_query: of(earlier.name), ...at({ from: earlier.bounds.from, to: earlier.bounds.to + 1 }) },
    versions: `${versionName(earlier.name)} → ${versionName(now.name)}`,
  };
}

async function askCompared(asked: Params, base: Base, sort: string, signal: AbortSignal): Promise<Answer> {
  const params = { ...asked, ...base.change };
  const { functions, function_count: count, scale, type, new_total: total, new: { quality } } = await get<DiffAnswer>('diff', {
    ...params, ...base.params, normalize: 'duration', sort,
  }, signal);
  const by = divisor(type, quality);
  return {
    count, sum: total / by, type, quality, compared: true, versions: base.versions,
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
    count, sum: total / by, type, quality, compared: false, versions: '',
    rows: functions.map(({ function: name, file, binary, flat, cum }) => ({
      name, file, binary, self: flat / by, total: cum / by, selfBefore: null, totalBefore: null,
    })),
  };
}

// Where there is nothing to compare with, what there is now is an answer, too.
async function ask(params: Params, base: Base | null, sort: string, signal: AbortSignal): Promise<Answer> {
  const id = sort.replace(/^-/, '');
  const ordered = { ...params, order: sort.startsWith('-') ? 'desc' : 'asc', limit: String(ROWS_MAX) };
  try {
    if (base) return await askCompared(ordered, base, SORTS[id] ?? 'new_flat', signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  return askAlone(ordered, TOP_SORTS[id] ?? 'flat', signal);
}

function Change({ meaning, now, earlier }: { meaning: Meaning; now: number; earlier: number | null }) {
  if (earlier === null) return null;
  const by = now - earlier;
  const sign = by > 0 ? '+' : by < 0 ? '−' : '';
  return <>{sign}{formatRate(meaning, Math.abs(by))}{' '}
    <span class="quiet">{earlier === 0 ? (by > 0 ? 'new' : '') : `${sign}${formatPercent(Math.abs(by) / earlier)}`}</span></>;
}

function columnsOf(meaning: Meaning, answer: Answer | null, rows: string, sort: string, selection: Selection, bounds: Bounds): Column<Row>[] {
  const changes = /change/.test(sort); // a phone has room for them or for totals
  const unit = meaning.unit === 'nanoseconds' ? 'cores' : '';
  const share = (value: number) => answer && answer.sum > 0 ? formatPercent(value / answer.sum) : '';
  const columns: Column<Row>[] = [
    { id: 'name', title: ROWS.find(([id]) => id === rows)![2], code: true, order: ({ name }) => name,
      cell: ({ name }) => <Name name={name} /> },
    ...(answer?.rows.some(({ binary }) => binary !== '') ? [{ id: 'binary', title: 'Binary', minor: true,
      cell: ({ binary }: Row) => <span class="quiet long-name" title={binary}>{binary.replace(/^.*\//, '')}</span> }] : []),
    { id: 'self', title: `Self ${unit}`.trim(), number: true, order: ({ self }) => self,
      cell: ({ self }) => <>{formatRate(meaning, self)} <span class="quiet">{share(self)}</span></> },
    { id: 'total', title: `Total ${unit}`.trim(), number: true, minor: changes, order: ({ total }) => total,
      cell: ({ total }) => <>{formatRate(meaning, total)} <span class="quiet">{share(total)}</span></> },
  ];
  const uses: Column<Row>[] = rows !== 'function' ? [] : [{ id: 'uses', title: 'Over time, used by', minor: true,
    cell: ({ name }) => <UsesCell selection={selection} bounds={bounds} name={name} /> }];
  if (!answer?.compared) return [...columns, ...uses];
  return [...columns,
    { id: 'change', title: 'Change, self', number: true, minor: !changes, order: ({ self, selfBefore }) => self - (selfBefore ?? 0),
      cell: ({ self, selfBefore }) => <Change meaning={meaning} now={self} earlier={selfBefore} /> },
    { id: 'total-change', title: 'Change, total', number: true, minor: true,
      order: ({ total, totalBefore }) => total - (totalBefore ?? 0),
      cell: ({ total, totalBefore }) => <Change meaning={meaning} now={total} earlier={totalBefore} /> },
    ...uses,
  ];
}

const DEFAULT_SORT = '-self';
export const CHANGED_SORT = '-change';

export function Functions({ route: { params } }: PageProps) {
  const range = rangeFrom(params);
  const text = params.get('query') ?? 'cpu{}';
  const selection = parseQuery(text) ?? { type: 'cpu', matchers: [] };
  const search = params.get('search') ?? '';
  const sort = params.get('sort') ?? DEFAULT_SORT;
  const page = Number(params.get('page') ?? '1') - 1 || 0;
  const service = labelOf(selection, 'service_name');
  const choices = SINCE.filter(([id]) => id !== 'version' || service !== '');
  const [since, , back] = choices.find(([id]) => id === params.get('since')) ?? SINCE[0];
  const [rows, , , many] = ROWS.find(([id]) => id === params.get('rows')) ?? ROWS[0];
  const [interval, seconds] = intervalOf(params, 'off');
  const fixed = !isRelative(range);
  const [asked, renew] = useNow(fixed ? 0 : seconds);
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const earlier = before(bounds, back || undefined);
  const loaded = useLoad(`${text} ${bounds.from} ${bounds.to} ${since} ${search} ${sort} ${rows}`, async (signal) => ask({
    query: text, from: String(bounds.from), to: String(bounds.to), search: search || undefined,
    rows: rows === 'function' ? undefined : rows,
  }, since === 'version' ? await versionBase(selection, bounds, signal)
    : { change: {}, params: at(earlier), versions: '' }, sort, signal));
  const answer = loaded.error?.status === 404 ? null : loaded.value;
  const meaning = meaningOf(answer?.type ?? '');
  const columns = useMemo(() => columnsOf(meaning, answer, rows, sort, selection, bounds), [answer, rows, sort]);

  function show(change: Params, replace = false) {
    go(address('/functions', {
      query: text === 'cpu{}' ? undefined : text, ...rangeParams(range), search,
      since: since === SINCE[0][0] ? undefined : since, rows: rows === 'function' ? undefined : rows, sort: sort === DEFAULT_SORT ? undefined : sort,
      refresh: params.get('refresh') ?? undefined, ...namesParam(), ...change,
    }), replace);
  }
  // What a row leads to: a function's page, a package's functions, a binary's stacks.
  const linkOf = ({ name }: Row) => rows === 'function'
    ? address('/function', { query: text, name, ...rangeParams(range), ...namesParam() })
    : rows === 'package' ? address('/functions', { query: text, ...rangeParams(range), search: name, ...namesParam() })
      : address('/explore', { query: text, ...rangeParams(range), ...namesParam(),
        flame: new URLSearchParams({ only: name }).toString() });
  const changed = sort === CHANGED_SORT;
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
        <div class="group" role="group" aria-label="Rows">
          {ROWS.map(([id, title]) => <button key={id} type="button" class="button" aria-pressed={id === rows}
            onClick={() => show({ rows: id === 'function' ? undefined : id })}>{title}</button>)}
        </div>
        <button type="button" class="button" aria-pressed={changed}
          onClick={() => show({ sort: changed ? undefined : CHANGED_SORT })}>What changed</button>
        <label class="inline">Change since <select class="button whole" value={since}
          onChange={(event) => show({ since: event.currentTarget.value })}>
          {choices.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
        </select></label>
        {answer && <span class="quiet">{answer.count > answer.rows.length
          ? `${grouped(answer.rows.length)} of ${grouped(answer.count)}` : grouped(answer.count)} {many}
          {answer.compared ? answer.versions === '' ? '' : `; ${answer.versions}` : '; no data to compare with'}</span>}
      </div>
      {answer && <QualityLine sides={[{ quality: answer.quality, bounds }]} />}
      <Progress loaded={loaded} />
      {loaded.error && loaded.error.status !== 404 && <Failure loaded={loaded} />}
      {loaded.error?.status === 404 && <FirstProfile range={range} />}
      {answer && answer.rows.length > 0 && (
        <div data-hold class={loaded.stale ? 'stale' : undefined} aria-busy={loaded.stale}>
          <List label={ROWS.find(([id]) => id === rows)![1]} columns={columns} rows={answer.rows}
            keyOf={({ name, file, binary }) => `${name} ${file} ${binary}`}
            link={linkOf}
            sort={sort} onSort={(next) => show({ sort: next === DEFAULT_SORT ? undefined : next }, true)}
            page={page} onPage={(next) => show({ page: next === 0 ? undefined : String(next + 1) })} />
        </div>
      )}
      {answer && answer.rows.length === 0 && <div class="notice"><p>None of the {many} matches “{search}”.</p></div>}
    </div>
  );
}
