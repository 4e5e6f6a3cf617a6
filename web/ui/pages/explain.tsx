// SPDX-License-Identifier: Apache-2.0
// What rose in a service at a time, and why: `assay explain` on the page.

import { formatPercent } from '../../flame/data/units';
import type { PageProps } from '../app';
import { get } from '../api';
import { useLoad } from '../load';
import { Suggest } from '../controls/suggest';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go } from '../route';
import { useSettings } from '../settings';
import { formatBounds, formatTime } from '../time';

const WINDOWS = ['1m', '5m', '15m', '1h'] as const;

interface Cause {
  function: string;
  base: number | null;
  value: number | null;
  growth: number | null;
  growth_low: number | null;
  growth_high: number | null;
  share: number | null;
  cause: string;
}

interface Symptom {
  name: string;
  query: string;
  unit: string;
  base: number;
  value: number;
  rose: boolean;
  chosen: boolean;
}

interface Answer {
  service: string;
  from: number;
  to: number;
  base_from: number;
  base_to: number;
  rose: boolean;
  certain: boolean; // false: the causes may be noise
  symptoms: Symptom[];
  causes: Cause[];
  undecided: number;
  versions: { version: string; first: number }[];
  since: { version: string; first: number } | null;
  traces: { trace_id: string }[];
  link: string;
}

const number = (value: number | null) => value === null ? '–' : value.toPrecision(3);
const signed = (share: number | null) => share === null ? 'unbounded' : (share > 0 ? '+' : '') + formatPercent(share);

function Symptoms({ answer, at, window }: { answer: Answer; at: string; window: string }) {
  return (
    <section class="card">
      <h2>Symptoms</h2>
      <table class="table plain">
        <thead><tr><th scope="col">What</th><th scope="col" class="number">Before</th>
          <th scope="col" class="number">In the window</th><th scope="col">Unit</th><th scope="col">Rose</th></tr></thead>
        <tbody>
          {answer.symptoms.map(({ name, query, unit, base, value, rose, chosen }) => (
            <tr key={name}>
              <th scope="row"><a href={address('/explore', {
                query, from: String(Math.floor(answer.base_from)), to: String(Math.ceil(answer.to)) })}>{name}</a></th>
              <td class="number">{number(base)}</td>
              <td class="number">{number(value)}</td>
              <td>{unit}</td>
              <td>{rose ? <span class="doubt">{chosen ? 'yes, explained here' : 'yes'}</span> : 'no'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {at === '' && window === '' && <p class="quiet">Choose a time to look at another window.</p>}
    </section>
  );
}

function Causes({ answer }: { answer: Answer }) {
  const unit = answer.symptoms.find(({ chosen }) => chosen)?.unit ?? '';
  return (
    <section class="card">
      <h2>What grew</h2>
      {!answer.certain && <p>No function's growth is certain{answer.causes.length > 0
        && '; these changes are the greatest'}{answer.undecided > 0 && ` (${answer.undecided} undecided)`}.</p>}
      {answer.causes.length > 0 && <table class="table plain">
        <thead><tr><th scope="col">Function</th><th scope="col" class="number">Before, {unit}</th>
          <th scope="col" class="number">In the window</th><th scope="col" class="number">Growth</th>
          <th scope="col" class="number">95% interval</th><th scope="col" class="number">Share</th></tr></thead>
        <tbody>
          {answer.causes.map((cause) => (
            <tr key={cause.function}>
              <th scope="row"><span class="long-name">{cause.function}</span></th>
              <td class="number">{number(cause.base)}</td>
              <td class="number">{number(cause.value)}</td>
              <td class="number" title={cause.cause === 'unknown' ? undefined : `because of: ${cause.cause}`}>
                {cause.growth === null ? 'new' : signed(cause.growth)}</td>
              <td class="number">{cause.growth === null ? '' : `${signed(cause.growth_low)} … ${signed(cause.growth_high)}`}</td>
              <td class="number">{cause.share === null ? '' : formatPercent(cause.share)}</td>
            </tr>
          ))}
        </tbody>
      </table>}
    </section>
  );
}

function Around({ answer }: { answer: Answer }) {
  const { utc } = useSettings();
  return (
    <section class="card">
      <h2>Since when</h2>
      <p>{answer.since
        ? <>Since version <strong>{answer.since.version}</strong>, first seen {formatTime(answer.since.first, utc)}.</>
        : answer.versions.length === 0 ? 'The service has no label version.'
        : answer.versions.length === 1 ? `Version ${answer.versions[0].version} ran the whole time.`
        : `${answer.versions.length} versions ran; the growth didn't come with one of them.`}</p>
      <p>Window: {formatBounds(answer, utc)}. Calm time before:{' '}
        {formatBounds({ from: answer.base_from, to: answer.base_to }, utc)}.</p>
      {answer.traces.length > 0 && <p>Example traces: {answer.traces.map(({ trace_id: id }) =>
        <code key={id} class="long-name">{id} </code>)}</p>}
      <p><a class="button" href={answer.link}>Show the comparison</a></p>
    </section>
  );
}

export function Explain({ route: { params } }: PageProps) {
  const service = params.get('service') ?? '';
  const at = params.get('at') ?? '';
  const window = params.get('window') ?? '';
  const services = useLoad('services', (signal) => get<string[]>('label/service_name/values', { from: 'now-1d', to: 'now' }, signal));
  const loaded = useLoad(service === '' ? null : `${service} ${at} ${window}`,
    (signal) => get<Answer>('explain', { service, at: at || undefined, window: window || undefined }, signal));
  const show = (change: { service?: string; at?: string; window?: string }) =>
    go(address('/explain', { service, at, window, ...change }));
  return (
    <div class={loaded.stale ? 'page stale' : 'page'} aria-busy={loaded.stale}>
      <div class="page-head">
        <h1>Explain</h1>
        <Suggest label="Service" value={service} options={services.value ?? []}
          onChoose={(next) => show({ service: next })} />
        <form onSubmit={(event) => {
          event.preventDefault();
          show({ at: new FormData(event.currentTarget).get('at') as string });
        }}>
          <label class="inline">at <input class="field" name="at" key={at} defaultValue={at}
            placeholder="now, now-10m or 2026-11-19T14:32:00Z" /></label>
        </form>
        <label class="inline">within <select class="button" aria-label="Window" value={window || '5m'}
          onChange={(event) => show({ window: event.currentTarget.value })}>
          {[...new Set([...WINDOWS, ...(window === '' ? [] : [window])])].map((one) =>
            <option key={one} value={one}>{one}</option>)}
        </select></label>
      </div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      {service === '' && <Nothing><p>Choose a service and a time. The server finds what rose in it
        then (CPU time, run queue, locks, disks, memory), compares that with the calm time before,
        and names the functions that are responsible.</p></Nothing>}
      {loaded.value && service !== '' && <div class="cards raw">
        <Symptoms answer={loaded.value} at={at} window={window} />
        <Causes answer={loaded.value} />
        <Around answer={loaded.value} />
      </div>}
    </div>
  );
}
