// SPDX-License-Identifier: Apache-2.0
// Where the time of a selection's threads went: what `assay triage` says, and the flame graph by state.

import { useMemo } from 'preact/hooks';
import { stateColour } from '../../flame/colour';
import { splitOf } from '../../flame/state';
import { formatPercent, formatValue } from '../../flame/data/units';
import type { PageProps } from '../app';
import { get, type FlameAnswer } from '../api';
import { askTop } from '../data/exact';
import { useLoad } from '../load';
import { moreParams } from '../data/more';
import { Flame } from '../parts/flame';
import { BriefName, Name } from '../parts/name';
import { QualityLine } from '../parts/quality';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go, namesParam, type Params } from '../route';
import { parseQuery, writeQuery, type Selection } from '../selection';
import { useSettings } from '../settings';
import { askStates, STATE } from '../data/states';
import { boundsOf, rangeFrom, rangeParams } from '../time';

const WALL = 'wall{}';
// As many characters of a function's name as a column has room for.
const NAME_MAX = 48;
const COLOURED = 'colour=state';

interface TriageAnswer {
  verdict: string;
  words: string;
  busy_ns: number;
  ns: Record<string, number>;
  error_ns: Record<string, number>;
  locks: { ns: number; waiter: string; lock: string; holder: string }[];
  mutex_ns: number;
  mutex_holders: { ns: number; holder: string }[];
  ran_instead: { ns: number; name: string; cgroup?: string }[];
  stack_ns: number;
  stack_share_error: number;
  stack: string[];
  next: string;
}

// What a kind is called here, and the state that its samples have; idle is decided by rules.
const KINDS: Record<string, readonly [title: string, state: string]> = {
  computing: ['Computing', 'running'],
  starved: ['Waiting for a CPU', 'runnable'],
  lock: ['Waiting for locks', 'lock'],
  disk: ['Waiting for disks', 'disk'],
  network: ['Waiting for the network', 'network'],
  pipe: ['Waiting for other processes', 'pipe'],
  child: ['Waiting for children', 'child'],
  io_uring: ['Waiting for io_uring', 'io_uring'],
  channel: ['Waiting for other goroutines', 'channel'],
  sleeping: ['Sleeping', 'sleep'],
  other: ['Waiting for something else', 'other'],
  idle: ['Idle', ''],
};

const time = (ns: number) => formatValue(ns, 'nanoseconds');
const exactly = (ns: number, error: number) => error >= 1e6 ? `${time(ns)} ± ${time(error)}` : time(ns);

function Kinds({ answer, link }: { answer: TriageAnswer; link: (state: string) => string }) {
  const { theme: { scheme } } = useSettings();
  const rows = Object.entries(answer.ns).filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
  const whole = rows.reduce((sum, [, ns]) => sum + ns, 0);
  return (
    <section class="card">
      <h2>Time of threads</h2>
      <table class="table plain">
        <thead><tr><th scope="col" class="triage-where">Where</th><th scope="col" class="number">Time</th>
          <th scope="col" class="number">%</th><th scope="col" class="triage-share"><span class="hidden">Share</span></th></tr></thead>
        <tbody>
          {rows.map(([kind, ns]) => {
            const [title, state] = KINDS[kind] ?? [kind, ''];
            return (
              <tr key={kind}>
                <th scope="row">{state === '' ? title : <a href={link(state)}>{title}</a>}</th>
                <td class="number">{exactly(ns, answer.error_ns[kind] ?? 0)}</td>
                <td class="number">{formatPercent(ns / whole)}</td>
                <td class="triage-share"><span style={{ width: `${(100 * ns) / whole}%`,
                  background: stateColour(state || 'idle', scheme) }} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

// Waiter, lock and holder, with the time on each.
function Locks({ answer, functionLink }: { answer: TriageAnswer; functionLink: (name: string) => string }) {
  if (answer.locks.length === 0) return null;
  const named = (name: string, otherwise: string) => name === ''
    ? <span class="quiet">{otherwise}</span> : <a href={functionLink(name)}><BriefName name={name} most={NAME_MAX} /></a>;
  return (
    <section class="card">
      <h2>Locks</h2>
      <table class="table plain">
        <thead><tr><th scope="col">Waiter</th><th scope="col">Lock</th><th scope="col">Holder</th>
          <th scope="col" class="number">Time</th><th scope="col" class="number minor">% of locks</th></tr></thead>
        <tbody>
          {answer.locks.map(({ waiter, lock, holder, ns }) => (
            <tr key={`${waiter} ${lock} ${holder}`}>
              <th scope="row">{named(waiter, 'unknown')}</th>
              <td>{lock === '' ? <span class="quiet">unnamed</span> : <code>{lock}</code>}</td>
              <td>{named(holder, 'not seen')}</td>
              <td class="number">{time(ns)}</td>
              <td class="number minor">{formatPercent(ns / answer.ns.lock)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

// Who made others wait, by the program's own profile of mutexes.
function MutexHolders({ answer, functionLink }: { answer: TriageAnswer; functionLink: (name: string) => string }) {
  if (answer.mutex_holders.length === 0) return null;
  return (
    <section class="card">
      <h2>Holders by the program's mutex profile</h2>
      <table class="table plain">
        <thead><tr><th scope="col">Holder</th><th scope="col" class="number">Others waited</th>
          <th scope="col" class="number">%</th></tr></thead>
        <tbody>
          {answer.mutex_holders.map(({ holder, ns }) => (
            <tr key={holder}>
              <th scope="row"><a href={functionLink(holder)}><BriefName name={holder} most={NAME_MAX} /></a></th>
              <td class="number">{time(ns)}</td>
              <td class="number">{formatPercent(ns / answer.mutex_ns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RanInstead({ answer }: { answer: TriageAnswer }) {
  if (answer.ran_instead.length === 0) return null;
  return (
    <section class="card">
      <h2>Had the CPU instead</h2>
      <table class="table plain">
        <thead><tr><th scope="col">Service</th><th scope="col">cgroup</th>
          <th scope="col" class="number">Time</th><th scope="col" class="number">% of waiting</th></tr></thead>
        <tbody>
          {answer.ran_instead.map(({ name, cgroup, ns }) => (
            <tr key={`${name} ${cgroup ?? ''}`}>
              <th scope="row">{name}</th><td>{cgroup ?? ''}</td>
              <td class="number">{time(ns)}</td>
              <td class="number">{formatPercent(ns / answer.ns.starved)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Widest({ answer, functionLink }: { answer: TriageAnswer; functionLink: (name: string) => string }) {
  if (answer.stack.length === 0) return null;
  const share = answer.stack_ns / (answer.ns[answer.verdict] || NaN);
  const error = answer.stack_share_error;
  return (
    <section class="card">
      <h2>Stack with most of it</h2>
      <p class="quiet">{formatPercent(share)}{error >= 0.0005 && ` ± ${formatPercent(error)}`},
        innermost first</p>
      <ol class="triage-stack">
        {answer.stack.map((name, i) => <li key={i}>{name.startsWith('[')
          ? name : <a href={functionLink(name)}><Name name={name} /></a>}</li>)}
      </ol>
    </section>
  );
}

export function Triage({ route }: PageProps) {
  const range = rangeFrom(route.params);
  const text = route.params.get('query') ?? WALL;
  const selection: Selection = parseQuery(text) ?? { type: 'wall', matchers: [] };
  const view = route.params.get('flame') ?? COLOURED;
  const bounds = useMemo(() => boundsOf(range), [range.from, range.to]);
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const key = `${text} ${bounds.from} ${bounds.to}`;
  const triage = useLoad(`triage ${key}`, (signal) =>
    get<TriageAnswer>('triage', { query: text, ...times }, signal));
  const split = splitOf(view) || undefined;
  const flame = useLoad(`flame ${key} ${split}`, (signal) =>
    get<FlameAnswer>('flame', { query: text, ...times, split }, signal));
  const labels = useLoad(`labels ${key}`, (signal) =>
    get<string[]>('labels', { query: text, ...times }, signal));
  const show = (change: Params, replace = false) => go(address('/triage', {
    query: text, ...rangeParams(range), flame: view, ...namesParam(), ...change }), replace);
  const explore = (state: string) => address('/explore', { ...rangeParams(range), query: writeQuery({ ...selection,
    matchers: [...selection.matchers.filter(({ name }) => name !== STATE), { name: STATE, operator: '=', value: state }] }) });
  const functionLink = (name: string) => address('/function', {
    query: text, name, ...rangeParams(range), ...namesParam() });
  const answer = triage.value;
  return (
    <div class={triage.stale ? 'page stale' : 'page'} aria-busy={triage.stale}>
      <h1 class="hidden">Triage</h1>
      <SelectionBar title="Triage" selection={selection} range={range} bounds={bounds}
        onChange={(next, nextRange) => show({
          query: writeQuery(next), from: undefined, to: undefined, ...rangeParams(nextRange) })} />
      <Progress loaded={triage} />
      {triage.error?.status === 404
        ? <Nothing><p>{triage.error.message}</p></Nothing> : <Failure loaded={triage} />}
      {answer && <>
        <div class="notice triage-verdict" role="status">
          <p><strong>Mostly {answer.words}</strong>: {formatPercent((answer.ns[answer.verdict] ?? 0) / (answer.busy_ns || NaN))} of
            the {time(answer.busy_ns)} that threads were not idle.</p>
          <p class="quiet">Next: <code>{answer.next}</code></p>
          <p><a href={address('/explore', { query: text, ...rangeParams(range), group: STATE })}>Over time by state</a></p>
        </div>
        <div class="cards">
          <Kinds answer={answer} link={explore} />
          <Locks answer={answer} functionLink={functionLink} />
          <MutexHolders answer={answer} functionLink={functionLink} />
          {answer.ns.starved > 0 && <RanInstead answer={answer} />}
          <Widest answer={answer} functionLink={functionLink} />
        </div>
      </>}
      {answer && <Failure loaded={flame} />}
      {answer && flame.value && <>
        <QualityLine sides={[{ quality: flame.value.quality, bounds }]} />
        <Flame data={flame.value.flame} state={view}
          onState={(state, isStep) => show({ flame: state }, !isStep)}
          onOpenFunction={(name) => go(functionLink(name))}
          exact={askTop({ query: text, ...times })}
          more={async (path, again, signal) => (await get<FlameAnswer>('flame', {
            query: text, ...times, split, ...moreParams(path, again),
          }, signal)).flame}
          states={(signal) => askStates(selection, times, split, signal)}
          splits={(labels.value ?? []).filter((name) => !name.startsWith('__') && name !== STATE)} />
      </>}
    </div>
  );
}
