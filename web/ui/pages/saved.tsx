// SPDX-License-Identifier: Apache-2.0
// What people have kept on this server: named views, notes at time ranges, and pins against retention.

import { useState } from 'preact/hooks';
import { formatValue } from '../../flame/data/units';
import type { PageProps } from '../app';
import { call, get } from '../api';
import { together, useLoad } from '../load';
import { Failure, Nothing, Progress } from '../parts/status';
import { address } from '../route';
import { KEPT, useKept, type Note, type Pin, type Pins, type View } from '../saved';
import { useSettings } from '../settings';
import { formatAge, formatBounds, formatTime, rangeOf } from '../time';

// A second press deletes: there is nothing to undo it with.
function DeleteButton({ path, name, onProblem }: { path: string; name: string; onProblem: (problem: string) => void }) {
  const [sure, setSure] = useState(false);
  async function remove() {
    if (!sure) {
      setSure(true);
      return;
    }
    try {
      await call(`/api/v1/${path}`, {}, { method: 'DELETE' });
      window.dispatchEvent(new Event(KEPT));
    } catch (error) {
      setSure(false);
      onProblem((error as Error).message);
    }
  }
  return (
    <button type="button" class="button" aria-label={`${sure ? 'Really delete' : 'Delete'} ${name}`}
      onBlur={() => setSure(false)} onClick={() => void remove()}>{sure ? 'Really delete?' : 'Delete'}</button>
  );
}

const explore = (service: string, from: number, to: number) => address('/explore', {
  query: service === '' ? undefined : `cpu{service_name=${JSON.stringify(service)}}`, ...rangeOf({ from, to }) });

export function Saved(_props: PageProps) {
  const { utc } = useSettings();
  const kept = useKept();
  const [problem, setProblem] = useState('');
  const views = useLoad(`views ${kept}`, (signal) => get<View[]>('views', {}, signal));
  const notes = useLoad(`notes ${kept}`, (signal) => get<Note[]>('notes', {}, signal));
  const pins = useLoad(`pins ${kept}`, (signal) => get<Pins>('pins', {}, signal));
  const loaded = together(views, notes, pins);
  const now = Date.now() / 1000;
  const age = (saved: number) => <time title={formatTime(saved, utc)}>{formatAge(now - saved)}</time>;
  const state = ({ dropped, why, expires }: Pin) => dropped === null ? `expires ${formatTime(expires, utc)}`
    : <span class="doubt">dropped {formatTime(dropped, utc)}: {why}</span>;
  return (
    <div class="page">
      <div class="page-head"><h1>Saved</h1><span class="problem" role="alert">{problem}</span></div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      {views.value && notes.value && pins.value && <>
        {views.value.length + notes.value.length + pins.value.pins.length === 0 && <Nothing>
          <p>Nothing saved yet. Save a view with the bookmark at the top of each page. Drag over a chart to add a
            note to a range, to pin it against retention, or to download it as an incident bundle.</p>
        </Nothing>}
        {views.value.length > 0 && <>
          <div class="page-head"><h2>Views</h2></div>
          <table class="table" aria-label="Views">
            <thead><tr><th scope="col">Name</th><th scope="col" class="minor">Page</th><th scope="col" class="minor">By</th>
              <th scope="col" class="number minor">Saved</th><th scope="col"><span class="hidden">Delete</span></th></tr></thead>
            <tbody>{views.value.map(({ id, name, address: to, by, saved }) => (
              <tr key={id}><th scope="row"><a href={to}>{name}</a></th><td class="minor">{/^\/(\w*)/.exec(to)?.[1] || 'services'}</td>
                <td class="minor">{by}</td><td class="number minor">{age(saved)}</td>
                <td class="number"><DeleteButton path={`views/${id}`} name={name} onProblem={setProblem} /></td></tr>
            ))}</tbody>
          </table>
        </>}
        {notes.value.length > 0 && <>
          <div class="page-head"><h2>Notes</h2></div>
          <table class="table" aria-label="Notes">
            <thead><tr><th scope="col">Note</th><th scope="col" class="minor">Service</th><th scope="col">Range</th><th scope="col" class="minor">By</th>
              <th scope="col" class="number minor">Saved</th><th scope="col"><span class="hidden">Delete</span></th></tr></thead>
            <tbody>{notes.value.map(({ id, text, service, from, to, by, saved }) => (
              <tr key={id}><th scope="row"><a href={explore(service, from, to)}>{text}</a></th><td class="minor">{service || 'all'}</td>
                <td>{formatBounds({ from, to }, utc)}</td><td class="minor">{by}</td><td class="number minor">{age(saved)}</td>
                <td class="number"><DeleteButton path={`notes/${id}`} name={text} onProblem={setProblem} /></td></tr>
            ))}</tbody>
          </table>
        </>}
        {pins.value.pins.length > 0 && <>
          <div class="page-head"><h2>Pins</h2><span class="quiet">{formatValue(pins.value.bytes, 'bytes')} of
            {' '}{formatValue(pins.value.limit_bytes, 'bytes')}</span></div>
          <table class="table" aria-label="Pins">
            <thead><tr><th scope="col">Reason</th><th scope="col">Range</th><th scope="col">State</th><th scope="col" class="minor">By</th>
              <th scope="col" class="number minor">Saved</th><th scope="col"><span class="hidden">Delete</span></th></tr></thead>
            <tbody>{pins.value.pins.map((pin) => (
              <tr key={pin.id}><th scope="row"><a href={explore('', pin.from, pin.to)}>{pin.reason}</a></th>
                <td>{formatBounds(pin, utc)}</td><td>{state(pin)}</td><td class="minor">{pin.by}</td><td class="number minor">{age(pin.saved)}</td>
                <td class="number"><DeleteButton path={`pins/${pin.id}`} name={pin.reason} onProblem={setProblem} /></td></tr>
            ))}</tbody>
          </table>
        </>}
      </>}
    </div>
  );
}
