// SPDX-License-Identifier: Apache-2.0
// What a person has set for all pages: theme and clock. Remembered where the browser allows it.

import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { Lifetime } from '../flame/dom';
import { Theme } from '../flame/theme';

const UTC_KEY = 'assay-utc';

export class Settings {
  readonly theme = new Theme(new Lifetime());
  private inUtc: boolean;
  private readonly listeners = new Set<() => void>();

  constructor() {
    try {
      this.inUtc = window.localStorage.getItem(UTC_KEY) === '1';
    } catch {
      this.inUtc = false;
    }
    this.theme.subscribe(() => this.changed());
  }

  get utc(): boolean {
    return this.inUtc;
  }

  toggleUtc(): void {
    this.inUtc = !this.inUtc;
    try {
      window.localStorage.setItem(UTC_KEY, this.inUtc ? '1' : '0');
    } catch {
      // Then it holds until the page closes.
    }
    this.changed();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

export const SettingsContext = createContext<Settings>(null as unknown as Settings);

export function useSettings(): Settings {
  const settings = useContext(SettingsContext);
  const [, render] = useState(0);
  useEffect(() => settings.subscribe(() => render((count) => count + 1)), [settings]);
  return settings;
}
