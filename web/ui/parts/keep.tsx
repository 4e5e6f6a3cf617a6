// SPDX-License-Identifier: Apache-2.0
// The dialogs that keep something on the server: a name for a view, a note at a range, a pin against
// retention; and the one that makes an incident bundle.

import { useEffect, useRef, useState } from 'preact/hooks';
import { send } from '../api';
import { makeBundle } from '../data/bundle';
import { KEPT, type Keep } from '../saved';
import { useSettings } from '../settings';
import { formatBounds } from '../time';
import { save } from './export';

const DAY = 86400;
const TITLES = { view: 'Save this view', note: 'Add a note', pin: 'Pin this range', bundle: 'Incident bundle' };

export function KeepDialog({ what, onClose }: { what: Keep; onClose: () => void }) {
  const { utc } = useSettings();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [everywhere, setEverywhere] = useState(false);
  const [days, setDays] = useState('90');
  const [busy, setBusy] = useState(false);
  const [state, setState] = useState('');
  const [problem, setProblem] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  const service = what.kind === 'note' ? what.service : '';

  async function run(): Promise<void> {
    if (what.kind === 'bundle') {
      const [blob, name] = await makeBundle(what.query, what.bounds, (done, all) => setState(`${done} of ${all} files`));
      save(blob, name);
      return;
    }
    if (what.kind === 'view')
      await send('POST', 'views', { name: text, address: location.pathname + location.search });
    else if (what.kind === 'note')
      await send('POST', 'notes', { text, ...what.bounds, ...(everywhere || service === '' ? {} : { service }) });
    else
      await send('POST', 'pins', { reason: text, ...what.bounds, expires: Math.round(Date.now() / 1000 + Number(days) * DAY) });
    window.dispatchEvent(new Event(KEPT));
  }

  async function submit(event: Event) {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    try {
      await run();
      dialog.current?.close();
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  }

  return (
    <dialog ref={dialog} class="dialog" aria-label={TITLES[what.kind]} onClose={onClose}>
      <h2>{TITLES[what.kind]}</h2>
      <form class="form" onSubmit={submit}>
        {what.kind !== 'view' && <p>{formatBounds(what.bounds, utc)}</p>}
        {what.kind === 'view' && <label>Name <input class="field" required maxLength={200} value={text}
          onInput={(event) => setText(event.currentTarget.value)} /></label>}
        {what.kind === 'note' && <label>Note <input class="field" required maxLength={1000} value={text}
          onInput={(event) => setText(event.currentTarget.value)} /></label>}
        {what.kind === 'note' && service !== '' && <label class="check"><input type="checkbox" checked={everywhere}
          onChange={(event) => setEverywhere(event.currentTarget.checked)} /> For all services, not only {service}</label>}
        {what.kind === 'pin' && <>
          <label>Reason <input class="field" required maxLength={1000} value={text}
            onInput={(event) => setText(event.currentTarget.value)} /></label>
          <label>Keep for days <input class="field" type="number" min="1" max="3660" required value={days}
            onInput={(event) => setDays(event.currentTarget.value)} /></label>
          <p class="quiet">Retention leaves the raw data of these days in place until then. If the disk limit is
            reached, pinned days are deleted last, and the page Saved shows which pins were dropped.</p>
        </>}
        {what.kind === 'bundle' && <p class="quiet">One archive with the profiles, flame graphs, the comparison with
          the previous period, data quality, versions, notes, and settings of agents and server.</p>}
        <p class="quiet" role="status">{state}</p>
        <p class="problem" role="alert">{problem}</p>
        <div class="dialog-end">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" class="button primary" disabled={busy || (what.kind !== 'bundle' && text.trim() === '')}>
            {what.kind === 'bundle' ? 'Download' : what.kind === 'pin' ? 'Pin' : 'Save'}</button>
        </div>
      </form>
    </dialog>
  );
}
