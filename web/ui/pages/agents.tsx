// SPDX-License-Identifier: Apache-2.0
// The agents: what each costs its host, what it samples, what it lost, whether it is heard of, and
// which orders they have.

import { useState } from 'preact/hooks';
import type { PageProps } from '../app';
import { get, token } from '../api';
import { useLoad } from '../load';
import { ControlDialog, Orders, useControl } from '../parts/control';
import { Icon } from '../parts/icon';
import { List, SearchField, sorted, type Column } from '../parts/list';
import { Refresh } from '../controls/refresh';
import { Failure, Progress } from '../parts/status';
import { intervalOf, useNow } from '../refresh';
import { address, go, type Params } from '../route';
import { parseQuery, quote } from '../selection';
import { useSettings } from '../settings';
import { formatAge, formatTime } from '../time';
import { formatPercent, formatValue, grouped } from '../../flame/data/units';

// What an agent says of itself; any of it may be missing from other versions.
interface AgentStatus {
  means?: string;
  shortcoming?: string;
  upload_error?: string;
  budget_level?: number; // how far it has cut itself back
  budget_what?: string;
  budget_why?: string;
  rate_hz?: number;
  samples?: number;
  cpu_share?: number;
  resident_bytes?: number;
  spool_batches?: number;
  windows_dropped?: number;
  spool_dropped?: number;
  losses?: Record<string, number>;
}

export interface Agent {
  agent: string;
  host: string;
  version: string;
  labels: Record<string, string>;
  first: number;
  last: number;
  silent: boolean;
  clock_offset_seconds: number;
  status: AgentStatus | null;
  capture: 'on' | 'off';
  capture_wanted: 'on' | 'off';
}

const lost = ({ status }: Agent) => status
  ? Object.values(status.losses ?? {}).reduce((sum, count) => sum + count, 0)
    + (status.windows_dropped ?? 0) + (status.spool_dropped ?? 0)
  : null;

// The one sentence that matters, the worst first.
function stateOf(agent: Agent): [words: string, wrong: boolean] {
  if (agent.silent) return ['silent', true];
  if (agent.status?.upload_error) return [agent.status.upload_error, true];
  if (agent.capture === 'off') return [agent.capture_wanted === 'off' ? 'capture off (server)' : 'capture off', false];
  if (agent.status?.budget_level) return [[agent.status.budget_what, agent.status.budget_why].filter(Boolean).join(': '), true];
  if (agent.status?.shortcoming) return [agent.status.shortcoming, true];
  if (Math.abs(agent.clock_offset_seconds) > 5)
    return [`clock ${Math.round(Math.abs(agent.clock_offset_seconds))} s ${agent.clock_offset_seconds > 0 ? 'ahead' : 'behind'}`, true];
  return ['ok', false];
}

function lossesOf({ status }: Agent): string {
  return Object.entries(status?.losses ?? {}).filter(([, count]) => count > 0)
    .map(([reason, count]) => `${reason}: ${grouped(count)}`).join(', ');
}

function columnsOf(now: number, utc: boolean, order: ((agent: Agent) => void) | null): Column<Agent>[] {
  const number = (id: string, title: string, value: (agent: Agent) => number | null | undefined,
    format: (value: number) => string, minor = false): Column<Agent> => ({
    id, title, number: true, minor, order: (agent) => value(agent) ?? null,
    cell: (agent) => { const found = value(agent); return found == null ? '' : format(found); },
  });
  return [
    { id: 'host', title: 'Host', order: ({ host }) => host,
      cell: ({ host, agent }) => <span class="long-name" title={agent}>{host || agent}</span> },
    { id: 'state', title: 'State', order: (agent) => stateOf(agent)[0],
      cell: (agent) => { const [words, wrong] = stateOf(agent); return <span class={wrong ? 'doubt' : 'quiet'}>{words}</span>; } },
    number('rate', 'Rate', ({ status }) => status?.rate_hz, (rate) => `${rate} Hz`),
    number('samples', 'Samples', ({ status }) => status?.samples, (count) => formatValue(count, 'count'), true),
    { id: 'lost', title: 'Lost', number: true, order: lost,
      cell: (agent) => { const count = lost(agent); return count === null ? ''
        : <span class={count > 0 ? 'doubt' : undefined} title={lossesOf(agent)}>{grouped(count)}</span>; } },
    number('cost', 'CPU', ({ status }) => status?.cpu_share, formatPercent),
    number('memory', 'Memory', ({ status }) => status?.resident_bytes, (bytes) => formatValue(bytes, 'bytes'), true),
    { id: 'means', title: 'By', minor: true, order: ({ status }) => status?.means ?? null,
      cell: ({ status }) => status?.means ?? '' },
    { id: 'version', title: 'Version', minor: true, order: ({ version }) => version, cell: ({ version }) => version },
    { id: 'last', title: 'Last seen', number: true, minor: true, order: ({ last }) => last,
      cell: ({ last }) => <time title={formatTime(last, utc)}>{formatAge(now - last)}</time> },
    ...(order === null ? [] : [{ id: 'control', title: 'Control', quietTitle: true,
      cell: (agent: Agent) => <button type="button" class="chip-close" aria-label={`Control ${agent.host || agent.agent}`}
        title="Rates, collectors, stop" onClick={() => order(agent)}><Icon name="more" /></button> }]),
  ];
}

function NoAgents() {
  return (
    <section class="first">
      <h2 class="first-title">No agents</h2>
      <p>An agent samples a Linux machine continuously and sends the profiles to this server. Start
        one on each host:</p>
      <pre>sudo assay agent --server {location.origin}{token() === null ? '' : ' --token-file FILE'}</pre>
    </section>
  );
}

// How many agents a selector of hosts means; the server reads all others.
function agentsMeant(agents: readonly Agent[], selector: string): number | null {
  const parsed = parseQuery(selector);
  const [only] = parsed?.matchers ?? [];
  if (!parsed || parsed.type !== '' || parsed.matchers.length !== 1 || only.name !== 'host' || only.operator !== '=')
    return selector.trim() === '' ? agents.length : null;
  return agents.filter(({ host }) => host === only.value).length;
}

// A selector that means this one.
const onlyHost = ({ host, agent, labels }: Agent) =>
  host !== '' ? `{host=${quote(host)}}` : labels.agent ? `{agent=${quote(agent)}}` : '';

export function Agents({ route: { params } }: PageProps) {
  const { utc } = useSettings();
  const [interval, seconds] = intervalOf(params, '10s');
  const [asked, renew] = useNow(seconds);
  const search = params.get('search') ?? '';
  const sort = params.get('sort') ?? 'host';
  const page = Number(params.get('page') ?? '1') - 1 || 0;
  const loaded = useLoad(`agents ${asked}`, (signal) => get<Agent[]>('agents', {}, signal));
  const [ordering, setOrdering] = useState<string | null>(null); // the selector that the dialog begins with
  const [ordered, setOrdered] = useState('');
  const control = useControl(asked);
  const mayOrder = control.value !== null && control.value !== undefined;
  const columns = columnsOf(Date.now() / 1000, utc, mayOrder ? (agent) => setOrdering(onlyHost(agent)) : null);
  const agents = (loaded.value ?? []).filter(({ host, agent }) =>
    `${host} ${agent}`.toLowerCase().includes(search.toLowerCase()));

  function show(change: Params) {
    go(address('/agents', { search, sort: sort === 'host' ? undefined : sort,
      refresh: params.get('refresh') ?? undefined, ...change }), true);
  }
  return (
    <div class="page">
      <div class="page-head">
        <h1>Agents</h1>
        {loaded.value && loaded.value.length > 0 && <SearchField label="Search hosts" value={search}
          onChange={(text) => show({ search: text })} />}
        <span class="space" />
        <span class="quiet" role="status">{ordered}</span>
        {mayOrder && <button type="button" class="button" onClick={() => setOrdering('')}>Control…</button>}
        <Refresh interval={interval} answered={loaded.answered} onRefresh={renew}
          onInterval={(id) => show({ refresh: id === '10s' ? undefined : id })} />
      </div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      {loaded.value?.length === 0 && <NoAgents />}
      <div data-hold>
      {agents.length > 0 && <List label="Agents" columns={columns} rows={sorted(agents, columns, sort)}
        keyOf={({ agent }) => agent} sort={sort} onSort={(next) => show({ sort: next })}
        link={({ host }) => address('/explore', { query: `cpu{host="${host.replace(/[\\"]/g, '\\$&')}"}` })}
        page={page} onPage={(next) => show({ page: next === 0 ? undefined : String(next + 1) })} />}
      </div>
      {control.value && <Orders control={control.value} />}
      {ordering !== null && <ControlDialog selector={ordering}
        count={(selector) => agentsMeant(loaded.value ?? [], selector)}
        onDone={(words) => { setOrdered(`Ordered: ${words}.`); renew(); }} onClose={() => setOrdering(null)} />}
      {loaded.value && loaded.value.length > 0 && agents.length === 0
        && <div class="notice"><p>No host's name holds “{search}”.</p></div>}
    </div>
  );
}
