// SPDX-License-Identifier: Apache-2.0
// What an answer is made of: the series behind it, single samples that belong to traces, and the
// commands that ask for the same from a shell.

import { useState } from 'preact/hooks';
import { copyText } from '../../flame/dom';
import { shownName } from '../../flame/data/names';
import { formatValue, grouped } from '../../flame/data/units';
import { get, token, type ExemplarsAnswer, type SeriesRow } from '../api';
import { curlCommand, queryCommand, type Shown } from '../commands';
import { useLoad } from '../load';
import { useSettings } from '../settings';
import { formatTime, type Bounds } from '../time';
import { Icon } from './icon';
import { Failure, Progress } from './status';

const SHOWN_MAX = 200;

function Commands({ shown }: { shown: Shown }) {
  const [copied, setCopied] = useState(-1);
  const secret = token() ? '-H "Authorization: Bearer $ASSAY_TOKEN"' : '';
  const lines = [
    queryCommand(shown, 'top'),
    queryCommand(shown, 'profile', '-o profile.pb.gz'),
    curlCommand(shown, '/api/v1/profile', `${secret ? `${secret} ` : ''}-o profile.pb.gz`),
  ];
  async function copy(i: number) {
    setCopied(await copyText(lines[i]) ? i : -1);
    setTimeout(() => setCopied(-1), 2000);
  }
  return (
    <section class="card">
      <h2>Command line</h2>
      {lines.map((line, i) => (
        <div key={line} class="command">
          <pre>{line}</pre>
          <button type="button" class="button button-icon" aria-label="Copy the command"
            title="Copy" onClick={() => copy(i)}><Icon name="copy" /></button>
          <span class="hidden" role="status">{copied === i ? 'Copied' : ''}</span>
        </div>
      ))}
    </section>
  );
}

function Labels({ labels }: { labels: Record<string, string> }) {
  return <>{Object.entries(labels).map(([name, value]) => (
    <span key={name} class="label"><span class="quiet">{name}=</span><bdi>{shownName(value)}</bdi></span>
  ))}</>;
}

function Series({ query, bounds }: { query: string; bounds: Bounds }) {
  const { utc } = useSettings();
  const found = useLoad(`${query} ${bounds.from} ${bounds.to}`, (signal) =>
    get<SeriesRow[]>('series', { query, from: String(bounds.from), to: String(bounds.to) }, signal));
  const rows = found.value ?? [];
  return (
    <section class="card">
      <h2>Series <span class="quiet">{grouped(rows.length)}</span></h2>
      <Progress loaded={found} /><Failure loaded={found} />
      {rows.length > 0 && (
        <table class="table plain">
          <thead><tr><th scope="col">Labels</th><th scope="col">Type</th>
            <th scope="col" class="number">First</th><th scope="col" class="number">Last</th></tr></thead>
          <tbody>
            {rows.slice(0, SHOWN_MAX).map((row) => (
              <tr key={`${row.type} ${JSON.stringify(row.labels)}`}>
                <td><Labels labels={row.labels} /></td>
                <td class="code">{row.type}</td>
                <td class="number">{formatTime(row.first, utc)}</td>
                <td class="number">{formatTime(row.last, utc)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows.length > SHOWN_MAX && <p class="quiet">The first {SHOWN_MAX} are listed.</p>}
    </section>
  );
}

function Exemplars({ query, bounds }: { query: string; bounds: Bounds }) {
  const { utc } = useSettings();
  const found = useLoad(`${query} ${bounds.from} ${bounds.to}`, (signal) =>
    get<ExemplarsAnswer>('exemplars', {
      query, from: String(bounds.from), to: String(bounds.to), limit: String(SHOWN_MAX),
    }, signal));
  const rows = found.value?.exemplars ?? [];
  return (
    <section class="card">
      <h2>Samples with a trace <span class="quiet">{grouped(rows.length)}</span></h2>
      <Progress loaded={found} /><Failure loaded={found} />
      {found.value && rows.length === 0
        && <p class="quiet">None of these samples has a trace or a span.</p>}
      {rows.length > 0 && (
        <table class="table plain">
          <thead><tr><th scope="col">Time</th><th scope="col" class="number">Value</th>
            <th scope="col">Trace and span</th><th scope="col">Stack, innermost first</th></tr></thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                <td class="no-break">{formatTime(row.time, utc)}</td>
                <td class="number">{formatValue(row.value, found.value?.unit ?? '')}</td>
                <td class="code">{row.trace_id || row.span_id}</td>
                <td><details><summary class="code"><bdi>{shownName(row.stack[0] ?? '')}</bdi></summary>
                  <ol class="stack code">{row.stack.slice(1).map((name, k) =>
                    <li key={k}><bdi>{shownName(name)}</bdi></li>)}</ol></details></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function Raw({ query, bounds }: { query: string; bounds: Bounds }) {
  return (
    <div class="cards raw">
      <Commands shown={{ origin: location.origin, query, bounds }} />
      <Series query={query} bounds={bounds} />
      <Exemplars query={query} bounds={bounds} />
    </div>
  );
}
