// SPDX-License-Identifier: Apache-2.0
// The keys of the page: one table that both the dispatcher and the help overlay read.

import { Lifetime, make } from '../dom';

export interface Command {
  keys: string[];
  // How the help writes the keys, where their names would not do.
  shown?: string;
  help: string;
  run: () => void;
  // Also while typing in a field.
  typing?: boolean;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.matches('input, select, textarea') || target.isContentEditable);
}

// A focused button keeps Enter and the space bar for itself.
function isPressing(event: KeyboardEvent): boolean {
  return (event.key === 'Enter' || event.key === ' ')
    && event.target instanceof HTMLElement && event.target.matches('button, a');
}

// `commands` is asked at each key: while a dialog is open, only a few apply.
export function listenForKeys(
  life: Lifetime, target: EventTarget, commands: () => Command[],
): void {
  life.listen<KeyboardEvent>(target, 'keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const command = commands().find(({ keys }) => keys.includes(event.key));
    if (!command || (isTyping(event.target) && !command.typing) || isPressing(event)) return;
    event.preventDefault();
    command.run();
  });
}

export class Help {
  readonly element: HTMLDialogElement;

  constructor(commands: Command[]) {
    const rows = commands.filter(({ help }) => help !== '').map(({ keys, shown, help }) =>
      make('tr', {},
        make('td', {}, ...(shown ?? keys[0]).split(' ').map((key) => make('kbd', {}, key))),
        make('td', {}, help)));
    const half = Math.ceil(rows.length / 2);
    const close = make('button', { type: 'button', class: 'button' }, 'Close');
    close.addEventListener('click', () => this.element.close());
    this.element = make('dialog', { class: 'help', 'aria-label': 'Keyboard help' },
      make('h2', {}, 'Keyboard'),
      make('div', { class: 'help-columns' },
        make('table', {}, ...rows.slice(0, half)), make('table', {}, ...rows.slice(half))),
      make('p', { class: 'quiet' },
        'Click a frame to zoom, double-click for the whole graph. On a touch screen, tap once to '
        + 'see what a frame is and again to zoom.'),
      close);
    this.element.addEventListener('click', (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  toggle(): void {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
