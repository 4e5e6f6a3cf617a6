// SPDX-License-Identifier: Apache-2.0
// Source lines by cost: of a whole selection, or of one function from its first line to its last.

import { useState } from 'preact/hooks';
import { shownName } from '../../flame/names';
import { formatPercent, formatValue, grouped } from '../../flame/units';
import { get, type LinesAnswer } from '../api';
import { useLoad } from '../load';
import { place } from '../names';
import type { Bounds } from '../time';
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

export function Lines({ query, bounds, name, link }: LinesProps) {
  const [sort, setSort] = useState<'flat' | 'cum'>('flat');
  const answer = useLoad(`${query} ${name ?? ''} ${bounds.from} ${bounds.to} ${sort}`, (signal) =>
    get<LinesAnswer>('lines', {
      query, function: name, from: String(bounds.from), to: String(bounds.to), sort,
      limit: String(LIMIT),
    }, signal));
  const found = answer.value;
  const known = found?.lines.some(({ line }) => line > 0);
  const head = (key: 'flat' | 'cum', title: string) => (
    <th scope="col" class="number" aria-sort={name === undefined && sort === key ? 'descending' : undefined}>
      {name === undefined
        ? <button type="button" class="link" onClick={() => setSort(key)}>{title}</button> : title}
    </th>
  );
  return (
    <>
      <Progress loaded={answer} />
      <Failure loaded={answer} />
      {found && !known && (
        <Nothing><p>These profiles have no line numbers. Programs with debug information, and
          formats that keep lines (pprof, OpenTelemetry), have them.</p></Nothing>
      )}
      {found && known && <>
        <table class="table plain lines">
          <thead><tr>
            <th scope="col">Line</th>
            {name === undefined && <th scope="col">Function</th>}
            {head('flat', 'Self')}{head('cum', 'Total')}
          </tr></thead>
          <tbody>
            {found.lines.map((row) => (
              <tr key={`${row.function} ${row.file} ${row.line}`}>
                <td class="code" title={shownName(row.file)}><bdi>{shownName(place(row.file, row.line))}</bdi></td>
                {name === undefined && <td class="code">
                  <a href={link(row.function)} title={shownName(row.function)}>
                    <bdi>{shownName(row.function)}</bdi></a></td>}
                <td class="number"><Bar share={row.flat / found.total} />
                  <span class="figure">{formatValue(row.flat, found.unit)}</span> <span class="quiet aside">
                    {formatPercent(row.flat / found.total)}</span></td>
                <td class="number">{formatValue(row.cum, found.unit)} <span class="quiet aside">
                  {formatPercent(row.cum / found.total)}</span></td>
              </tr>
            ))}
          </tbody>
        </table>
        {found.line_count > found.lines.length && (
          <p class="table-end quiet">The {grouped(found.lines.length)} of {grouped(found.line_count)}{' '}
            lines that cost most.</p>
        )}
      </>}
    </>
  );
}
