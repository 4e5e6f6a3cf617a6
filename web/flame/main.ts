// SPDX-License-Identifier: Apache-2.0
// The entry of the self-contained page: reads the data block that the program wrote into it, mounts
// the graph, and keeps the view in the URL's fragment.

import './page.css';
import './theme.css';
import { mount, type FlameApp } from './app';
import { FlameDataError, parseProfile } from './data/data';
import { make } from './dom';
import { decodeState, encodeState } from './state';

// The element carries the mounted application, for scripts and tests that drive the page.
interface FlameElement extends HTMLElement {
  flame?: FlameApp;
}

function start(element: FlameElement): void {
  const block = document.getElementById('flame-data');
  if (!block)
    throw new FlameDataError('This page contains no flame data: it is the empty template.');
  const profile = parseProfile(block.textContent ?? '');
  // The text is many times the size of the profile and is not needed again.
  block.remove();
  const app = mount(element, profile, {
    state: decodeState(location.hash, profile),
    onState: (state, step) => {
      const url = `#${encodeState(state, profile)}`;
      if (step) history.pushState(null, '', url);
      else history.replaceState(null, '', url);
    },
  });
  window.addEventListener('popstate', () => app.show(decodeState(location.hash, profile)));
  element.flame = app;
}

const element: FlameElement | null = document.getElementById('flame');
if (element) {
  try {
    start(element);
  } catch (error) {
    element.replaceChildren(make('p', { class: 'page-error', role: 'alert' },
      error instanceof FlameDataError ? error.message : `The page failed: ${String(error)}`));
    if (!(error instanceof FlameDataError)) throw error;
  }
}
