// SPDX-License-Identifier: Apache-2.0
// Orders to agents: the switch of all capture, rates and collectors, for one agent, those that a
// selector matches, or all. An order is read again before it is given.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, send } from '../api';
import { useLoad, type Loaded } from '../load';
import { useSettings } from '../settings';
import { formatTime } from '../time';

interface Wish {
  rate?: number;
  wall?: boolean;
  wall_rate?: number;
}

interface Order {
  since: number;
  selector: string;
  by: string;
  reason: string;
}

export interface ControlAnswer {
  version: string;
  rules: (Order & { capture: 'on' | 'off' })[];
  sampling: (Order & { sampling: Wish })[];
  agents: { known: number; silent: number; off: number; wanted_off: number; not_off_yet: number };
}

// Who may not give orders doesn't see them, either: that is an answer.
export function useControl(asked: number): Loaded<ControlAnswer | null> {
  return useLoad(`control ${asked}`, async (signal) => {
    try {
      return await get<ControlAnswer>('control', {}, signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return null;
      throw error;
    }
  });
}

const wishWords = ({ rate, wall, wall_rate: wallRate }: Wish): string => [
  rate === undefined ? '' : `CPU at ${rate} Hz`,
  wall === undefined ? '' : `wall time ${wall ? 'on' : 'off'}`,
  wallRate === undefined ? '' : `wall time at ${wallRate} Hz`,
].filter((part) => part !== '').join(', ') || 'own settings';

// Orders that apply now.
export function Orders({ control }: { control: ControlAnswer }) {
  const { utc } = useSettings();
  const all = [
    ...control.rules.map((rule) => ({ ...rule, words: `capture ${rule.capture}` })),
    ...control.sampling.map((rule) => ({ ...rule, words: wishWords(rule.sampling) })),
  ].sort((a, b) => b.since - a.since);
  if (all.length === 0) return null;
  return (
    <table class="table plain orders" aria-label="Orders">
      <thead><tr><th scope="col">Order</th><th scope="col">Agents</th><th scope="col">Reason</th>
        <th scope="col" class="minor">By</th><th scope="col" class="number minor">Since</th></tr></thead>
      <tbody>
        {all.map(({ words, selector, reason, by, since }) => (
          <tr key={`${words} ${selector} ${since}`}>
            <th scope="row">{words}</th>
            <td class="code">{selector === '' || selector === '{}' ? 'all' : selector}</td>
            <td>{reason}</td><td class="minor">{by}</td><td class="number minor">{formatTime(since, utc)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type Action = 'sampling' | 'reset' | 'off' | 'on';
const ACTIONS: readonly (readonly [Action, string])[] = [
  ['sampling', 'Set rates and collectors'], ['reset', 'Back to the agents’ own settings'],
  ['off', 'Stop all capture'], ['on', 'Resume capture'],
];

interface ControlDialogProps {
  selector: string; // to begin with; '' for all agents
  count: (selector: string) => number | null; // how many agents are meant; null: the server decides
  onDone: (words: string) => void;
  onClose: () => void;
}

export function ControlDialog({ selector: first, count, onDone, onClose }: ControlDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [selector, setSelector] = useState(first);
  const [action, setAction] = useState<Action>('sampling');
  const [rate, setRate] = useState('');
  const [wall, setWall] = useState('');
  const [wallRate, setWallRate] = useState('');
  const [reason, setReason] = useState('');
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const confirm = useRef<HTMLButtonElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => { if (asking) confirm.current?.focus(); }, [asking]);

  const wish: Wish = {
    ...(rate === '' ? {} : { rate: Number(rate) }), ...(wall === '' ? {} : { wall: wall === 'on' }),
    ...(wallRate === '' ? {} : { wall_rate: Number(wallRate) }),
  };
  const nothing = action === 'sampling' && Object.keys(wish).length === 0;
  const meant = count(selector);
  const agents = selector.trim() === '' ? 'all agents'
    : `${meant === 1 ? 'the agent' : meant === null ? 'the agents' : `the ${meant} agents`} matching ${selector}`;
  const words = action === 'sampling' ? `${wishWords(wish)} for ${agents}`
    : `${ACTIONS.find(([id]) => id === action)![1]} for ${agents}`;

  async function give(event: Event) {
    event.preventDefault();
    if (!asking) {
      setAsking(true);
      return;
    }
    setBusy(true);
    setProblem('');
    try {
      await send('POST', 'control', {
        ...(action === 'on' || action === 'off' ? { capture: action }
          : { sampling: action === 'reset' ? {} : wish }),
        selector: selector.trim(), reason,
      });
      dialog.current?.close();
      onDone(words);
    } catch (error) {
      setProblem((error as Error).message);
      setAsking(false);
      setBusy(false);
    }
  }

  return (
    <dialog ref={dialog} class="dialog" aria-label="Control agents" onClose={onClose}>
      <h2>Control agents</h2>
      <form class="form" onSubmit={give}>
        <label>Agents (a selector over their labels; empty for all) <input class="field code" value={selector}
          placeholder={'{host="web-1"}'} spellcheck={false} disabled={asking}
          onInput={(event) => setSelector(event.currentTarget.value)} /></label>
        <label>Order <select class="button" aria-label="Order" value={action} disabled={asking}
          onChange={(event) => setAction(event.currentTarget.value as Action)}>
          {ACTIONS.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
        </select></label>
        {action === 'sampling' && <>
          <label>CPU samples per second <input class="field" type="number" min="1" max="999" value={rate}
            placeholder="own setting" disabled={asking} onInput={(event) => setRate(event.currentTarget.value)} /></label>
          <label>Wall time <select class="button" aria-label="Wall time" value={wall} disabled={asking}
            onChange={(event) => setWall(event.currentTarget.value)}>
            <option value="">own setting</option><option value="on">on</option><option value="off">off</option>
          </select></label>
          <label>Wall time samples per second <input class="field" type="number" min="1" max="999" value={wallRate}
            placeholder="own setting" disabled={asking} onInput={(event) => setWallRate(event.currentTarget.value)} /></label>
        </>}
        <label>Reason <input class="field" value={reason} maxLength={200} disabled={asking}
          onInput={(event) => setReason(event.currentTarget.value)} /></label>
        <p class="quiet">Agents stay within the limits of their own settings. The audit log records the order.</p>
        {asking && <p role="alert"><b>{words}?</b></p>}
        <p class="problem" role="alert">{problem}</p>
        <div class="dialog-end">
          <button type="button" class="button" onClick={() => asking ? setAsking(false) : dialog.current?.close()}>
            {asking ? 'Back' : 'Cancel'}</button>
          <button ref={confirm} type="submit" class="button primary" disabled={busy || nothing}>
            {asking ? 'Give the order' : 'Continue'}</button>
        </div>
      </form>
    </dialog>
  );
}
