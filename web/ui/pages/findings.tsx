// SPDX-License-Identifier: Apache-2.0
// What the server has noticed: functions that grew from one version of a service to the next, and leaks.

import type { PageProps } from '../app';
import { get } from '../api';
import { useLoad, usePoll } from '../load';
import { List, sorted, type Column } from '../parts/list';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go } from '../route';
import { useSettings } from '../settings';
import { formatAge, formatTime } from '../time';
import { versionName } from '../data/versions';

interface Finding {
  id: string;
  kind: 'regression' | 'leak' | 'change';
  state: 'open' | 'closed';
  service: string;
  version: string;
  base_version: string;
  type: string;
  function: string;
  unit: string;
  growth?: number | null; // null: the function is new
  growth_low?: number | null;
  growth_high?: number | null;
  bytes_per_hour?: number | null; // of leaks, as all that follow
  bytes_per_hour_low?: number | null;
  bytes_per_hour_high?: number | null;
  seconds_to_limit?: number | null;
  base_share: number;
  share: number;
  opened: number;
  seen: number;
  closed?: number;
  reason?: string;
  link: string;
}

const percent = (part: number) => `${(part * 100).toFixed(1)}%`;
const growth = (value: number | null | undefined) =>
  value === null || value === undefined ? 'new' : `+${percent(value)}`;
const rate = (bytes: number | null | undefined) => `+${((bytes ?? 0) / 1048576).toFixed(1)} MiB/h`;

// How much it grew, and how certain that is.
function grown(finding: Finding): { text: string; title: string | undefined } {
  if (finding.kind === 'leak') {
    const left = finding.seconds_to_limit;
    const limit = left === null || left === undefined ? '' : `, memory limit in ${(left / 3600).toFixed(1)} h`;
    return { text: rate(finding.bytes_per_hour),
      title: `${rate(finding.bytes_per_hour_low)} to ${rate(finding.bytes_per_hour_high)} in one process${limit}` };
  }
  const { growth_low: low, growth_high: high } = finding;
  const bounded = typeof low === 'number' && typeof high === 'number';
  return { text: growth(finding.growth),
    title: bounded ? `${growth(low)} to ${growth(high)} (${finding.unit})` : undefined };
}

function columnsOf(now: number, utc: boolean): Column<Finding>[] {
  return [
    { id: 'function', title: 'Function', order: (finding) => finding.function,
      cell: (finding) => <span class="long-name">{finding.function}</span> },
    { id: 'kind', title: 'Kind', order: ({ kind }) => kind, cell: ({ kind }) => kind },
    { id: 'state', title: 'State', order: ({ state }) => state,
      cell: ({ state, reason }) => <span class={state === 'open' ? 'doubt' : undefined}
        title={reason}>{state}</span> },
    { id: 'service', title: 'Service', order: ({ service }) => service,
      cell: ({ service }) => <span class="long-name">{service}</span> },
    { id: 'version', title: 'Version', order: ({ version }) => version,
      cell: ({ version, base_version: base }) => <span class="long-name" title={`${version}, compared with ${base}`}>{versionName(version)}</span> },
    { id: 'growth', title: 'Growth', number: true, order: (finding) => finding.growth ?? finding.bytes_per_hour ?? Infinity,
      cell: (finding) => <span title={grown(finding).title}>{grown(finding).text}</span> },
    { id: 'share', title: 'Share', number: true, order: ({ share }) => share,
      cell: ({ share, base_share: base }) => <span title={`was ${percent(base)}`}>{percent(share)}</span> },
    { id: 'opened', title: 'Opened', number: true, order: ({ opened }) => opened,
      cell: ({ opened }) => <time title={formatTime(opened, utc)}>{formatAge(now - opened)}</time> },
  ];
}

// As a part of another page, it has a lower heading, and what is chosen stays in that page's address.
export function Findings({ route: { path, params }, part = false }: PageProps & { part?: boolean }) {
  const { utc } = useSettings();
  const sort = params.get('sort') ?? '-opened';
  const all = params.get('state') === 'all';
  const tick = usePoll(30000);
  const loaded = useLoad(`findings ${all} ${tick}`,
    (signal) => get<Finding[]>('findings', { state: all ? undefined : 'open' }, signal));
  const columns = columnsOf(Date.now() / 1000, utc);
  const show = (change: { sort?: string; state?: string }) =>
    go(address(path, { ...Object.fromEntries(params), sort, state: all ? 'all' : undefined, ...change }), true);
  const Element = part ? 'section' : 'div';
  return (
    <Element class={part ? undefined : 'page'}>
      <div class="page-head">
        {part ? <h2>Findings</h2> : <h1>Findings</h1>}
        <span class="space" />
        <button type="button" class="button" aria-pressed={all}
          onClick={() => show({ state: all ? undefined : 'all' })}>Closed, too</button>
      </div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      {loaded.value?.length === 0 && <Nothing>
        <p>No {all ? '' : 'open '}findings. The server compares each new version of a service (the
          label <code>version</code>) with the one before it, and lists here which functions take
          more CPU than before, and whose memory climbs without a plateau.</p>
      </Nothing>}
      {loaded.value && loaded.value.length > 0 && <List label="Findings" columns={columns}
        rows={sorted(loaded.value, columns, sort)} keyOf={({ id }) => id}
        link={({ link }) => link} sort={sort} onSort={(next) => show({ sort: next })} />}
    </Element>
  );
}
