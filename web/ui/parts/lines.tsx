// SPDX-License-Identifier: Apache-2.0
// Source lines by cost: of a whole selection, or of one function from its first line to its last.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { libraryOf } from '../../flame/data/library';
import { shownName } from '../../flame/data/names';
import { formatPercent, formatValue, grouped } from '../../flame/data/units';
import { get, type LinesAnswer } from '../api';
import { useLoad } from '../load';
import { place } from '../data/names';
import type { SourceLink } from '../data/source';
import type { Bounds } from '../time';
import { Place, SourceText } from './source';
import { Failure, Nothing, Progress } from './status';

export interface LinesProps {
  query: string;
  bounds: Bounds;
  name?: string; // the function, or none for all
  link: (name: string) => string;
}

const LIMIT = 200;

function Bar({ share }: { share: number }) {
  return (
    <span class="share-bar" aria-hidden="true">
      <svg viewBox="0 0 64 4" preserveAspectRatio="none">
        <rect width={Math.max(0, Math.min(1, share || 0)) * 64} height="4" />
      </svg>
    </span>
  );
}

type Row = LinesAnswer['lines'][number];

function Table(props: { rows: Row[]; answer: LinesAnswer; links: SourceLink[]; named: boolean;
  link: (name: string) => string; head: (key: 'flat' | 'cum', title: string) => ComponentChildren }) {
  const { rows, answer, links, named, link, head } = props;
  return (
    <table class="table plain lines">
      <thead><tr>
        <th scope="col">Line</th>
        {!named && <th scope="col">Function</th>}
        {head('flat', 'Self')}{head('cum', 'Total')}
      </tr></thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.function} ${row.file} ${row.line}`}>
            <td class="code" title={shownName(row.file)}><Place links={links} file={row.file}
              line={row.line}><bdi>{shownName(place(row.file, row.line))}</bdi></Place></td>
            {!named && <td class="code">
              <a href={link(row.function)} title={shownName(row.function)}>
                <bdi>{shownName(row.function)}</bdi></a></td>}
            <td class="number"><Bar share={row.flat / answer.total} />
              <span class="figure">{formatValue(row.flat, answer.unit)}</span> <span class="quiet aside">
                {formatPercent(row.flat / answer.total)}</span></td>
            <td class="number">{formatValue(row.cum, answer.unit)} <span class="quiet aside">
              {formatPercent(row.cum / answer.total)}</span></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// The rows of each file that has any, in the order in which they come.
function byFile(rows: Row[]): [string, Row[]][] {
  const files = new Map<string, Row[]>();
  for (const row of rows) {
    const known = files.get(row.file);
    if (known) known.push(row);
    else files.set(row.file, [row]);
  }
  return [...files];
}

// A program's own lines, and then those of libraries, which nobody who reads this can change.
function OwnFirst({ rows, table }: { rows: Row[]; table: (rows: Row[]) => ComponentChildren }) {
  const isOwn = (row: Row) => libraryOf(row.function, row.file, row.binary) === '';
  const [own, others] = [rows.filter(isOwn), rows.filter((row) => !isOwn(row))];
  if (own.length === 0 || others.length === 0) return <>{table(rows)}</>;
  return <>{table(own)}<h2 class="table-end">Libraries</h2>{table(others)}</>;
}

export function Lines({ query, bounds, name, link }: LinesProps) {
  const [sort, setSort] = useState<'flat' | 'cum'>('flat');
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const answer = useLoad(`${query} ${name ?? ''} ${bounds.from} ${bounds.to} ${sort}`, (signal) =>
    get<LinesAnswer>('lines', {
      query, function: name, ...times, sort, limit: String(LIMIT),
    }, signal));
  const repository = useLoad(`${query} ${bounds.from} ${bounds.to}`, (signal) =>
    get<{ links: SourceLink[] }>('source_links', { query, ...times }, signal));
  const links = repository.value?.links ?? [];
  const found = answer.value;
  const known = found?.lines.some(({ line }) => line > 0);
  const builds = new Map((found?.sources ?? []).map(({ file, build_id }) => [file, build_id]));
  const head = (key: 'flat' | 'cum', title: string) => (
    <th scope="col" class="number" aria-sort={name === undefined && sort === key ? 'descending' : undefined}>
      {name === undefined
        ? <button type="button" class="link" onClick={() => setSort(key)}>{title}</button> : title}
    </th>
  );
  const table = (rows: Row[], all: LinesAnswer) => <Table rows={rows} answer={all} links={links}
    named={name !== undefined} link={link} head={head} />;
  return (
    <>
      <Progress loaded={answer} />
      <Failure loaded={answer} />
      {found && !known && (
        <Nothing><p>These profiles have no line numbers. Programs with debug information, and
          formats that keep lines (pprof, OpenTelemetry), have them.</p></Nothing>
      )}
      {found && known && <>
        {name === undefined || builds.size === 0
          ? <OwnFirst rows={found.lines} table={(rows) => table(rows, found)} />
          : byFile(found.lines).map(([file, rows]) => {
            const build = builds.get(file);
            return build === undefined ? <div key={file}>{table(rows, found)}</div>
              : <SourceText key={file} file={file} build={build} rows={rows} answer={found}
                links={links} otherwise={table(rows, found)} />;
          })}
        {found.line_count > found.lines.length && (
          <p class="table-end quiet">The {grouped(found.lines.length)} of {grouped(found.line_count)}{' '}
            most expensive lines.</p>
        )}
      </>}
    </>
  );
}
