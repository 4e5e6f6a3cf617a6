// SPDX-License-Identifier: Apache-2.0
// Recordings on demand: a higher rate, for one service, for a while. Started here, watched while they
// arrive, opened, compared and stopped.

import { useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import type { PageProps } from '../app';
import { get, getBlob, send, type FlameAnswer } from '../api';
import { useLoad, usePoll, type Loaded } from '../load';
import { moreParams, WHOLE_FILE } from '../data/more';
import { CopyLink, Export } from '../parts/export';
import { Flame } from '../parts/flame';
import { List, sorted, type Column } from '../parts/list';
import { StartRecording } from '../parts/start-recording';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go } from '../route';
import { withLabel, writeQuery } from '../selection';
import { useSettings } from '../settings';
import { formatAge, formatDuration, formatTime } from '../time';
import { formatValue } from '../../flame/data/units';
import type { Agent } from './agents';

export interface Recording {
  id: string;
  name: string;
  service: string;
  selector: string;
  by: string;
  rate: number;
  seconds: number;
  created: number;
  expires: number;
  stopped: boolean;
  state: string;
  samples: number;
  agents_by_state: Record<string, number>;
  agents?: { agent: string; host: string; reason: string; state: string; samples: number }[];
}

const over = ({ state }: Recording) => !/^(pending|running|uploading)$/.test(state);
const bad = (state: string) => /^(refused|failed|expired)$/.test(state);

// Its profiles carry its id; the range is as long as it can have taken, so that the address stays
// good.
function selectionOf(recording: Recording) {
  return {
    query: writeQuery(withLabel({ type: 'cpu', matchers: [] }, 'recording', recording.id)),
    from: String(Math.floor(recording.created) - 60),
    to: String(Math.ceil(recording.expires) + recording.seconds + 60),
  };
}

// The same service just before, as the agents sampled it all the time.
function compareAddress(recording: Recording): string {
  const { query, from, to } = selectionOf(recording);
  return address('/compare', {
    query, from, to,
    base_query: writeQuery({ type: 'cpu',
      matchers: [{ name: 'service_name', operator: '=', value: recording.service }] }),
    base_from: String(Math.floor(recording.created) - 3600), base_to: String(Math.floor(recording.created)),
  });
}

function columnsOf(now: number, utc: boolean): Column<Recording>[] {
  return [
    { id: 'name', title: 'Recording', order: ({ name }) => name,
      cell: ({ name, id }) => <span class="long-name">{name || id}</span> },
    { id: 'state', title: 'State', order: ({ state }) => state,
      cell: ({ state, agents_by_state: counts }) => <span class={bad(state) ? 'doubt' : undefined}
        title={Object.entries(counts).map(([word, count]) => `${count} ${word}`).join(', ')}>{state}</span> },
    { id: 'service', title: 'Service', minor: true, order: ({ service }) => service,
      cell: ({ service }) => <span class="long-name">{service}</span> },
    { id: 'rate', title: 'Rate', number: true, minor: true, order: ({ rate }) => rate, cell: ({ rate }) => `${rate} Hz` },
    { id: 'seconds', title: 'For', number: true, minor: true, order: ({ seconds }) => seconds,
      cell: ({ seconds }) => formatDuration(seconds) },
    { id: 'samples', title: 'Samples', number: true, minor: true, order: ({ samples }) => samples,
      cell: ({ samples }) => formatValue(samples, 'count') },
    { id: 'by', title: 'By', minor: true, order: ({ by }) => by, cell: ({ by }) => by },
    { id: 'created', title: 'Started', number: true, order: ({ created }) => created,
      cell: ({ created }) => <time title={formatTime(created, utc)}>{formatAge(now - created)}</time> },
  ];
}

const TIMED = 'view=time';

// When each thread did what, drawn again while samples arrive.
function Timed({ id, loaded, view, onApp }: {
  id: string; loaded: Loaded<FlameAnswer>; view: string; onApp: (app: FlameApp | null) => void;
}) {
  if (!loaded.value) return loaded.error?.status === 404 ? null : <Failure loaded={loaded} />;
  return (
    <div class="recorded" aria-busy={loaded.stale}>
      <Flame key={id} data={loaded.value.flame} state={view} onApp={onApp}
        onState={(flame, step) => go(address('/recordings', { id, flame }), !step)}
        more={async (path, again, signal) =>
          (await get<FlameAnswer>(timesPath(id), moreParams(path, again), signal)).flame} />
    </div>
  );
}

const timesPath = (id: string) => `recordings/${encodeURIComponent(id)}/flame`;

// One of them, while it arrives and after.
function One({ id, view }: { id: string; view: string }) {
  const [done, setDone] = useState(false);
  const [problem, setProblem] = useState('');
  const tick = usePoll(done ? 0 : 1000);
  const loaded = useLoad(`${id} ${tick}`, async (signal) => {
    const found = await get<Recording>(`recordings/${encodeURIComponent(id)}`, {}, signal);
    setDone(over(found));
    return found;
  });
  const recording = loaded.value;
  const app = useRef<FlameApp | null>(null);
  // Samples come in windows of ten seconds.
  const times = useLoad(recording && recording.samples > 0
    ? `times ${id} ${over(recording) || Math.floor(tick / 10)}` : null,
  (signal) => get<FlameAnswer>(timesPath(id), WHOLE_FILE, signal));
  if (!recording) return <><Progress loaded={loaded} /><Failure loaded={loaded} /></>;
  const ready = recording.samples > 0;
  return (
    <>
      <div class="page-head">
        <h1>{recording.name || recording.id}</h1>
        <span class="quiet">{recording.service} at {recording.rate} Hz for {formatDuration(recording.seconds)}</span>
        <span class="space" />
        {!over(recording) && <button type="button" class="button" onClick={() => {
          send('DELETE', `recordings/${encodeURIComponent(id)}`, undefined).then(loaded.retry,
            (error: Error) => setProblem(error.message));
        }}>Stop</button>}
        <CopyLink link={address('/recordings', { id })} title="Copy a link to this recording" />
        {times.value && <Export title={recording.name || id} picture={() => app.current?.picture()}
          make={(format) => getBlob(timesPath(id), { format })} />}
        {ready && <a class="button" href={compareAddress(recording)}>Compare with the previous hour</a>}
        {ready && <a class="button primary" href={address('/explore', selectionOf(recording))}>Open</a>}
      </div>
      {problem !== '' && <p class="problem" role="alert">{problem}</p>}
      <Failure loaded={loaded} />
      <p class="quality" role="status">
        {over(recording) ? `Finished (${recording.state})` : `${recording.state}…`}
        , {formatValue(recording.samples, 'count')} samples
      </p>
      <table class="table plain" aria-label="Agents of this recording">
        <thead><tr><th scope="col">Host</th><th scope="col">State</th>
          <th scope="col" class="number">Samples</th><th scope="col">Why</th></tr></thead>
        <tbody>
          {(recording.agents ?? []).map((part) => (
            <tr key={part.agent}>
              <th scope="row">{part.host || part.agent}</th>
              <td class={bad(part.state) ? 'doubt' : undefined}>{part.state}</td>
              <td class="number">{formatValue(part.samples, 'count')}</td>
              <td>{part.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Timed id={id} loaded={times} view={view} onApp={(made) => { app.current = made; }} />
    </>
  );
}

export function Recordings({ route: { params } }: PageProps) {
  const { utc } = useSettings();
  const [starting, setStarting] = useState(false);
  const id = params.get('id');
  const sort = params.get('sort') ?? '-created';
  const tick = usePoll(id === null ? 5000 : 0);
  const loaded = useLoad(id === null ? `recordings ${tick}` : null,
    (signal) => get<Recording[]>('recordings', {}, signal));
  const agents = useLoad('agents', (signal) => get<Agent[]>('agents', {}, signal));
  const columns = columnsOf(Date.now() / 1000, utc);
  const heard = (agents.value ?? []).filter(({ silent }) => !silent);
  const start = heard.length > 0 && <button type="button" class="button primary"
    onClick={() => setStarting(true)}>Record…</button>;
  return (
    <div class={id === null ? 'page' : 'page explore'}>
      {id !== null ? <One key={id} id={id} view={params.get('flame') ?? TIMED} /> : <>
        <div class="page-head"><h1>Recordings</h1><span class="space" />{start}</div>
        <Progress loaded={loaded} />
        <Failure loaded={loaded} />
        {loaded.value?.length === 0 && <Nothing>
          <p>No recordings yet. A recording samples one service at a higher rate, on the hosts that
            run it, for a limited time.</p>
          {agents.value && heard.length === 0 && <p>A recording requires a reporting agent, and there is
            none: see <a href="/agents">Agents</a>.</p>}
        </Nothing>}
        {loaded.value && loaded.value.length > 0 && <List label="Recordings" columns={columns}
          rows={sorted(loaded.value, columns, sort)} keyOf={(recording) => recording.id}
          link={(recording) => address('/recordings', { id: recording.id })} sort={sort}
          onSort={(next) => go(address('/recordings', { sort: next }), true)} />}
      </>}
      {starting && <StartRecording hosts={heard.map(({ host }) => host)} onClose={() => setStarting(false)}
        onStarted={(started) => go(address('/recordings', { id: started }))} />}
    </div>
  );
}
