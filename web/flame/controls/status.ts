// SPDX-License-Identifier: Apache-2.0
// The line below the graph that describes the selected frame: for keyboards, fingers and screen
// readers, which have no hover.

import { make } from '../dom';
import { factsLine, type Facts } from './facts';

export class Status {
  readonly element: HTMLElement;
  private readonly text = make('div', { class: 'status-text', 'aria-live': 'polite' });
  private readonly button: HTMLButtonElement;

  // `onActions` opens the frame's menu at a point.
  constructor(onActions: (clientX: number, clientY: number) => void) {
    this.button = make('button', {
      type: 'button', class: 'button button-small', 'aria-haspopup': 'menu',
      title: 'Menu of this frame (o)',
    }, 'Actions');
    this.button.addEventListener('click', () => {
      const { left, top } = this.button.getBoundingClientRect();
      onActions(left, top);
    });
    this.element = make('div', { class: 'status' }, this.text, this.button);
  }

  clear(hint: string): void {
    this.button.hidden = true;
    this.element.classList.add('status-empty');
    this.text.replaceChildren(make('span', { class: 'quiet' }, hint));
  }

  show(facts: Facts, isFunction: boolean): void {
    this.button.hidden = !isFunction;
    this.element.classList.remove('status-empty');
    this.text.replaceChildren(
      make('span', { class: 'status-name' }, facts.name),
      facts.inlined ? make('span', { class: 'mark' }, '(inlined)') : '',
      make('span', { class: 'status-values' }, factsLine(facts)),
      make('span', { class: 'quiet status-origin' }, facts.origin.join(' · ')));
  }
}
