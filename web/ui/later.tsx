// SPDX-License-Identifier: Apache-2.0
// Pages that are fetched when they are first shown, or a moment after the first one is there.

import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import type { PageProps } from './app';

type Rest = typeof import('./pages/rest');

const AHEAD_MS = 1000;
const IDLE_MS = 200;

let rest: Rest | null = null;
let asked: Promise<Rest> | null = null;

// Questions are sent first; what they wait for is long enough for this.
function whenIdle(work: () => void): void {
  if ('requestIdleCallback' in window) window.requestIdleCallback(work, { timeout: IDLE_MS });
  else setTimeout(work, IDLE_MS);
}

function load(): Promise<Rest> {
  asked ??= import('./pages/rest').then((pages) => {
    rest = pages;
    whenIdle(pages.warmUp);
    return pages;
  }, (error: unknown) => {
    asked = null; // the next one who needs it asks again
    throw error;
  });
  return asked;
}

// So that a click on a link finds its page here, whatever has become of the server.
export function loadAhead(): void {
  window.setTimeout(() => void load().catch(() => undefined), AHEAD_MS);
}

// The pages of the rest, once they are here.
export function restOf(): Promise<Rest> {
  return load();
}

export function later(name: Exclude<keyof Rest, 'warmUp' | 'KeepDialog'>): ComponentType<PageProps> {
  return function Later(props: PageProps) {
    const [pages, setPages] = useState(rest);
    const [failed, setFailed] = useState(false);
    useLayoutEffect(() => {
      if (!pages) load().then((there) => setPages(() => there), () => setFailed(true));
    }, []);
    if (failed)
      return (
        <div class="notice wrong" role="alert">
          <p>This page could not be loaded: the server does not answer, or is another version by
            now. See whether it runs, then reload.</p>
          <p><button type="button" class="button" onClick={() => location.reload()}>Reload</button></p>
        </div>);
    if (!pages) return null;
    const Page = pages[name];
    return <Page {...props} />;
  };
}
