// SPDX-License-Identifier: Apache-2.0
// Keys that work on every page, and the map of them. The flame graph has its own besides, which its
// own help lists.

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { commandsOf, type Controls } from '../flame/controls/commands';
import { viewSecret } from './api';
import { go } from './route';

interface GlobalActions {
  help: () => void;
  theme: () => void;
  clock: () => void;
}

// A list's own; a flame graph has another, for functions.
const searchField = () => document.querySelector<HTMLElement>('[data-search]');

export const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement
  && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));

// "g" and then a letter goes to a page, as in many tools; a second is time enough.
const PAGES: Record<string, [path: string, title: string]> = viewSecret !== null ? {} : {
  s: ['/', 'services'],
  e: ['/explore', 'explore'],
  c: ['/compare', 'compare'],
  f: ['/files', 'files'],
  n: ['/findings', 'findings'],
  u: ['/functions', 'functions'],
  v: ['/saved', 'saved'],
  r: ['/recordings', 'recordings'],
  a: ['/agents', 'agents'],
  y: ['/symbols', 'symbols'],
};

// The first arrow key on a page of rows goes to the first of them, wherever the focus rests.
function enterList(event: KeyboardEvent): boolean {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return false;
  if (!(event.target instanceof Element) || !event.target.matches('body, .app, main')) return false;
  if (document.querySelector('.flame')) return false;
  const first = document.querySelector<HTMLElement>('main tbody th a');
  first?.focus();
  return first !== null;
}

export function useGlobalKeys(actions: GlobalActions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => { // a page that is seen hears keys
    let leader = -Infinity;
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing(event.target) || document.querySelector('dialog[open]')) return;
      const afterLeader = event.timeStamp - leader < 1000;
      leader = -Infinity;
      // A flame graph that is in focus answers for itself.
      const inGraph = event.target instanceof Element && event.target.closest('.flame');
      if (afterLeader && PAGES[event.key]) go(PAGES[event.key][0]);
      else if (event.key === 'g' && !inGraph) leader = event.timeStamp;
      else if (event.key === '?' && !inGraph) latest.current.help();
      else if (event.key === 'd' && !inGraph) latest.current.theme();
      else if (event.key === 'T') latest.current.clock();
      else if (event.key === '/' && searchField()) searchField()?.focus();
      else if (enterList(event)) return event.preventDefault();
      else return;
      event.preventDefault();
    };
    // Before the flame graph, which takes letters for itself: what follows "g" is ours.
    document.addEventListener('keydown', press, { capture: true });
    return () => document.removeEventListener('keydown', press, { capture: true });
  }, []);
}

type Rows = readonly (readonly [string, string])[];

const EVERYWHERE: Rows = [
  ...Object.entries(PAGES).map(([key, [, title]]) => [`g ${key}`, `go to ${title}`] as const),
  ['d', 'dark or light'],
  ['T', 'times in UTC or local'],
  ['?', 'this help'],
];

const IN_TIME: Rows = [
  ['[ ]', 'earlier, later'],
  ['-', 'zoom out'],
];

const IN_LISTS: Rows = [
  ['/', 'search'],
  ['↑ ↓', 'move between rows; Enter opens'],
];

// What the graph itself listens for; nothing is run here.
const IN_GRAPHS: Rows = commandsOf(null as unknown as Controls)
  .filter(({ help, keys }) => help !== '' && !['d', '?'].includes(keys[0]))
  .map(({ keys, shown, help }) => [shown ?? keys[0], help] as const);

function Keys({ title, rows }: { title: string; rows: Rows }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl class="keys">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(' ').map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-label="Keyboard" onClose={onClose}>
      <h2>Keyboard</h2>
      <div class="key-columns">
        <div>
          <Keys title="Everywhere" rows={EVERYWHERE} />
          <Keys title="Lists" rows={IN_LISTS} />
          <Keys title="Explore" rows={IN_TIME} />
        </div>
        <Keys title="Flame graphs" rows={IN_GRAPHS} />
      </div>
      <form method="dialog" class="dialog-end"><button class="button" type="submit">Close</button></form>
    </dialog>
  );
}
