// SPDX-License-Identifier: Apache-2.0
// A list of things to do, opened at a point: with the pointer or with the keyboard, and closed by
// anything else.

import { Lifetime, make } from '../dom';

export interface MenuItem {
  label: string;
  // The key that does the same.
  key?: string;
  run: () => void;
}

export class Menu {
  readonly element = make('div', { class: 'context', role: 'menu', hidden: true });
  private before: Element | null = null;
  private closed: () => void = () => undefined;

  constructor(life: Lifetime) {
    life.listen<PointerEvent>(document, 'pointerdown', (event) => {
      if (!this.element.contains(event.target as Node)) this.close(false);
    }, { capture: true });
    life.listen<KeyboardEvent>(this.element, 'keydown', (event) => this.press(event));
    life.listen(window, 'blur', () => this.close(false));
    life.listen(window, 'resize', () => this.close(false));
  }

  // `closed` is called when it closes, before what was chosen runs.
  open(
    title: string, items: MenuItem[], clientX: number, clientY: number, closed = () => {},
  ): void {
    this.close(false);
    this.before = document.activeElement;
    this.closed = closed;
    this.element.setAttribute('aria-label', title);
    this.element.replaceChildren(
      make('div', { class: 'context-title', title }, title),
      ...items.map(({ label, key, run }) => {
        const button = make('button', { type: 'button', role: 'menuitem', class: 'context-item' },
          make('span', {}, label), key ? make('kbd', {}, key) : null);
        button.addEventListener('click', () => {
          this.close(true);
          run();
        });
        return button;
      }));
    this.element.hidden = false;
    const { offsetWidth, offsetHeight } = this.element;
    this.element.style.left = `${Math.max(8, Math.min(clientX, innerWidth - offsetWidth - 8))}px`;
    this.element.style.top = `${Math.max(8, Math.min(clientY, innerHeight - offsetHeight - 8))}px`;
    this.items()[0]?.focus();
  }

  close(giveBack: boolean): void {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.closed();
    if (giveBack && this.before instanceof HTMLElement) this.before.focus();
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  private items(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>('[role=menuitem]')];
  }

  private press(event: KeyboardEvent): void {
    const items = this.items();
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Escape' || event.key === 'Tab') this.close(true);
    else if (event.key === 'ArrowDown') items[(at + 1) % items.length]?.focus();
    else if (event.key === 'ArrowUp') items[(at + items.length - 1) % items.length]?.focus();
    else if (event.key === 'Home') items[0]?.focus();
    else if (event.key === 'End') items[items.length - 1]?.focus();
    else if (event.key !== 'Enter' && event.key !== ' ') return;
    else {
      event.stopPropagation(); // the button acts by itself
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
