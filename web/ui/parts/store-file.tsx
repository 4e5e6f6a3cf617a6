// SPDX-License-Identifier: Apache-2.0
// Asks under which name a file is to be stored, and stores it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { post } from '../api';
import type { OpenFile } from '../data/files';
import { address } from '../route';
import { writeQuery } from '../selection';

interface Stored {
  windows: number;
  samples: number;
}

const guess = (name: string) => name.replace(/\..*$/, '').replace(/[^\w-]+/g, '-') || 'app';

export function StoreFile(props: { file: OpenFile; content: Blob; onClose: () => void }) {
  const { file, content, onClose } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [service, setService] = useState(() => guess(file.name));
  const [version, setVersion] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const [stored, setStored] = useState<Stored | null>(null);
  useEffect(() => dialog.current?.showModal(), []);

  async function store(event: Event) {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    try {
      setStored(await post<Stored>('push', { service_name: service.trim(), version: version.trim() }, content));
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  }

  const query = writeQuery({
    type: '', matchers: [{ name: 'service_name', operator: '=', value: service.trim() }],
  });
  return (
    <dialog ref={dialog} class="dialog" aria-label="Store this profile" onClose={onClose}>
      <h2>Store {file.name}</h2>
      {stored
        ? <>
          <p>Stored: {stored.samples} samples.</p>
          <div class="dialog-end">
            <button type="button" class="button" onClick={() => dialog.current?.close()}>Close</button>
            <a class="button primary" href={address('/explore', { query, from: 'now-14d' })}>Explore it</a>
          </div>
        </>
        : <form class="form" onSubmit={store}>
          <p class="quiet">The server stores it like a push, at the time of the profile, or at the
            current time if the profile doesn't have one.</p>
          <label>Service <input class="field" required value={service}
            onInput={(event) => setService(event.currentTarget.value)} /></label>
          <label>Version (optional) <input class="field" value={version}
            onInput={(event) => setVersion(event.currentTarget.value)} /></label>
          <p class="problem" role="alert">{problem}</p>
          <div class="dialog-end">
            <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
            <button type="submit" class="button primary" disabled={busy || service.trim() === ''}>Store</button>
          </div>
        </form>}
    </dialog>
  );
}
