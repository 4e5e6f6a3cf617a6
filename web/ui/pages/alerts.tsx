// SPDX-License-Identifier: Apache-2.0
// Alerts of the server's rules: firing, pending and recent ones.

import type { PageProps } from '../app';
import { get } from '../api';
import { useLoad, usePoll } from '../load';
import { List, sorted, type Column } from '../parts/list';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go } from '../route';
import { useSettings } from '../settings';
import { formatAge, formatTime } from '../time';
import { Findings } from './findings';

interface Alert {
  id: string;
  name: string;
  state: 'pending' | 'firing' | 'resolved';
  labels: Record<string, string>;
  value?: number;
  summary: string;
  link: string;
  runbook: string;
  since: number;
  fired?: number;
  ended?: number;
  reason?: string;
  muted: boolean;
  inhibited: boolean;
}

const order = { firing: 0, pending: 1, resolved: 2 };

function stateOf({ state, muted, inhibited, reason }: Alert): string {
  if (state === 'firing' && muted) return 'firing (maintenance)';
  if (state === 'firing' && inhibited) return 'firing (inhibited)';
  return state === 'resolved' && reason ? `resolved: ${reason}` : state;
}

function columnsOf(now: number, utc: boolean): Column<Alert>[] {
  return [
    { id: 'name', title: 'Alert', order: ({ name }) => name, cell: ({ name }) => <span class="long-name">{name}</span> },
    { id: 'state', title: 'State', order: ({ state }) => order[state],
      cell: (alert) => <span class={alert.state === 'firing' ? 'doubt' : undefined}>{stateOf(alert)}</span> },
    { id: 'service', title: 'Service', order: ({ labels }) => labels['service_name'] ?? '',
      cell: ({ labels }) => <span class="long-name">{labels['service_name'] ?? ''}</span> },
    { id: 'severity', title: 'Severity', order: ({ labels }) => labels['severity'] ?? '',
      cell: ({ labels }) => labels['severity'] ?? '' },
    { id: 'owner', title: 'Owner', order: ({ labels }) => labels['owner'] ?? '', cell: ({ labels }) => labels['owner'] ?? '' },
    { id: 'summary', title: 'Summary', order: ({ summary }) => summary,
      cell: ({ summary }) => <span class="long-name">{summary}</span> },
    { id: 'since', title: 'Since', number: true, order: ({ since }) => since,
      cell: ({ since }) => <time title={formatTime(since, utc)}>{formatAge(now - since)}</time> },
  ];
}

export function Alerts(props: PageProps) {
  const { params } = props.route;
  const { utc } = useSettings();
  const sort = params.get('order') ?? 'state';
  const tick = usePoll(30000);
  const loaded = useLoad(`alerts ${tick}`, (signal) => get<Alert[]>('alerts', {}, signal));
  const columns = columnsOf(Date.now() / 1000, utc);
  return (
    <div class="page">
      <div class="page-head">
        <h1>Alerts</h1>
        <span class="space" />
        <a class="button" href={address('/explain')}>Explain a service</a>
      </div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      {loaded.value?.length === 0 && <Nothing>
        <p>No alerts. The file of rules in the server's configuration (the key <code>rules</code>)
          makes alerts of service level indicators and findings.</p>
      </Nothing>}
      {loaded.value && loaded.value.length > 0 && <List label="Alerts" columns={columns}
        rows={sorted(loaded.value, columns, sort)} keyOf={({ id }) => id} link={({ link }) => link} sort={sort}
        onSort={(next) => go(address('/alerts', { ...Object.fromEntries(params), order: next }), true)} />}
      <Findings {...props} part />
    </div>
  );
}
