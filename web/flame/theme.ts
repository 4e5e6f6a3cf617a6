// SPDX-License-Identifier: Apache-2.0
// Dark or light, and which palette. Follows the system until a person chooses; the choice is
// remembered where the browser allows it.

import type { Scheme } from './colour';
import type { Lifetime } from './dom';

const KEY = 'assay-theme';

function remembered(): string {
  try {
    return window.localStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}

function remember(choice: string): void {
  try {
    window.localStorage.setItem(KEY, choice);
  } catch {
    // A page without storage still has its theme until it closes.
  }
}

export class Theme {
  // "dark" or "light" when chosen, and "safe" beside it.
  private chosen: 'dark' | 'light' | null;
  private safe: boolean;
  private printing = false;
  private readonly system = window.matchMedia('(prefers-color-scheme: dark)');

  private readonly listeners = new Set<() => void>();

  constructor(life: Lifetime) {
    const words = remembered().split(' ');
    this.chosen = words.includes('dark') ? 'dark' : words.includes('light') ? 'light' : null;
    this.safe = words.includes('safe');
    life.listen(this.system, 'change', () => this.changed());
    // Paper is white.
    life.listen(window, 'beforeprint', () => this.print(true));
    life.listen(window, 'afterprint', () => this.print(false));
  }

  get scheme(): Scheme {
    const dark = this.chosen ? this.chosen === 'dark' : this.system.matches;
    return { dark: dark && !this.printing, safe: this.safe };
  }

  // Calls back after every change until the returned function is called.
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  private print(on: boolean): void {
    this.printing = on;
    this.changed();
  }

  private keep(): void {
    remember([this.chosen ?? '', this.safe ? 'safe' : ''].join(' ').trim());
    this.changed();
  }

  toggleDark(): void {
    this.chosen = this.scheme.dark ? 'light' : 'dark';
    this.keep();
  }

  toggleSafe(): void {
    this.safe = !this.safe;
    this.keep();
  }
}
