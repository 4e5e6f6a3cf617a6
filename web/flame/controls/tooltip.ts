// SPDX-License-Identifier: Apache-2.0
// The box beside the pointer that says what a frame is and what it cost.

import { make } from '../dom';
import type { Facts } from './facts';

const AWAY_PX = 14;

export class Tooltip {
  readonly element = make('div', { class: 'tooltip', role: 'tooltip', hidden: true });

  hide(): void {
    this.element.hidden = true;
  }

  show(facts: Facts, clientX: number, clientY: number): void {
    this.fill(facts);
    this.element.hidden = false;
    const { offsetWidth, offsetHeight } = this.element;
    let x = clientX + AWAY_PX;
    let y = clientY + AWAY_PX;
    if (x + offsetWidth > window.innerWidth - 8) x = clientX - offsetWidth - AWAY_PX;
    if (y + offsetHeight > window.innerHeight - 8) y = clientY - offsetHeight - AWAY_PX;
    this.element.style.left = `${Math.max(8, x)}px`;
    this.element.style.top = `${Math.max(8, y)}px`;
  }

  private fill(facts: Facts): void {
    const name = make('div', { class: 'tooltip-name' }, facts.name);
    if (facts.inlined) name.append(' ', make('span', { class: 'mark' }, '(inlined)'));
    const parts: HTMLElement[] = [name];
    for (const line of facts.origin) parts.push(make('div', { class: 'tooltip-origin' }, line));
    if (facts.rows.length > 0) {
      const head = make('tr', {}, make('th'), ...facts.head.map((cell) => make('th', {}, cell)));
      const rows = facts.rows.map(({ label, cells }) =>
        make('tr', {}, make('th', {}, label), ...cells.map((cell) => make('td', {}, cell))));
      parts.push(make('table', {}, head, ...rows));
    }
    this.element.replaceChildren(...parts);
  }
}
