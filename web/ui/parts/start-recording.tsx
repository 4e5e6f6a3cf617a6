// SPDX-License-Identifier: Apache-2.0
// What to record: a service, how often, for how long, and on which host.

import { useEffect, useRef, useState } from 'preact/hooks';
import { get, send } from '../api';
import { useLoad } from '../load';
import { Suggest } from '../controls/suggest';

interface StartRecordingProps {
  hosts: string[];
  onStarted: (id: string) => void;
  onClose: () => void;
}

export function StartRecording({ hosts, onStarted, onClose }: StartRecordingProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [service, setService] = useState('');
  const [name, setName] = useState('');
  const [rate, setRate] = useState('99');
  const [seconds, setSeconds] = useState('30');
  const [host, setHost] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const services = useLoad('services', (signal) =>
    get<string[]>('label/service_name/values', { from: 'now-1d' }, signal));
  useEffect(() => dialog.current?.showModal(), []);

  async function start(event: Event) {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    try {
      const { id } = await send<{ id: string }>('POST', 'recordings', {
        service, rate: Number(rate), seconds: Number(seconds), ...(name === '' ? {} : { name }),
        ...(host === '' ? {} : { hosts: [host] }),
      });
      dialog.current?.close();
      onStarted(id);
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  }

  return (
    <dialog ref={dialog} class="dialog" aria-label="Start a recording" onClose={onClose}>
      <h2>Record a service</h2>
      <form class="form" onSubmit={start}>
        <label>Service <Suggest label="Service" value={service} options={services.value ?? []}
          onChoose={setService} /></label>
        <label>Samples per second on each CPU <input class="field" type="number" min="1" max="10000" required
          value={rate} onInput={(event) => setRate(event.currentTarget.value)} /></label>
        <label>Seconds <input class="field" type="number" min="1" max="3600" required
          value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} /></label>
        <label>Host <select class="button" value={host}
          onChange={(event) => setHost(event.currentTarget.value)}>
          <option value="">all hosts that run it</option>
          {hosts.map((one) => <option key={one} value={one}>{one}</option>)}
        </select></label>
        <label>Name <input class="field" value={name} maxLength={64}
          onInput={(event) => setName(event.currentTarget.value)} /></label>
        <p class="problem" role="alert">{problem}</p>
        <div class="dialog-end">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" class="button primary" disabled={busy || service === ''}>Record</button>
        </div>
      </form>
    </dialog>
  );
}
