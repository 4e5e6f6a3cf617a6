// SPDX-License-Identifier: Apache-2.0
// The controls above the graph: sample type, view, search and the switches. It shows a state and
// reports what a person wants; it decides nothing.

import { icon, make, type Lifetime } from '../dom';
import { Options, type Known } from './options';
import { typeLabel } from '../data/units';
import type { Profile } from '../data/data';
import type { State, View } from '../state';

export interface ToolbarActions {
  change: (change: Partial<State>) => void;
  toggleTheme: () => void;
  toggleSafe: () => void;
  help: () => void;
}

const ICONS = {
  mark: 'M2 13.5h12M3.5 10h9M5.5 6.5h6M7 3h2.5',
  flip: 'M5 2.5v11M2.5 5 5 2.5 7.5 5M11 13.5v-11M8.5 11l2.5 2.5 2.5-2.5',
  safe: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z',
  theme: 'M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z',
  help: 'M5.8 6a2.2 2.2 0 1 1 3.4 1.9c-.8.5-1.2.9-1.2 1.9M8 12.4v.1',
};

const VIEWS: readonly (readonly [View, string])[] = [
  ['both', 'Both'], ['graph', 'Graph'], ['table', 'Table'], ['tree', 'Tree'], ['sandwich', 'Sandwich'],
  ['time', 'Time'],
];

export class Toolbar {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  // Null where there is nothing to choose from.
  private readonly type: HTMLSelectElement | null;
  private readonly views = new Map<View, HTMLButtonElement>();
  private readonly regex: HTMLButtonElement;
  private readonly flip: HTMLButtonElement;
  private readonly safe: HTMLButtonElement;
  private readonly theme: HTMLButtonElement;
  private readonly options: Options;
  private readonly found = make('output', { class: 'found', 'aria-live': 'polite' });

  // `inside` a page that has a title and switches of its own, those here are left out.
  constructor(
    profile: Profile, private readonly actions: ToolbarActions, inside: boolean,
    known: Known, life: Lifetime,
  ) {
    this.options = new Options(profile, known, actions.change, life);
    this.type = profile.types.length > 1 ? this.typeChoice(profile) : null;

    this.search = make('input', {
      type: 'search', class: 'search-input', placeholder: 'Search functions', spellcheck: 'false',
      autocomplete: 'off', 'aria-label': 'Search functions', 'aria-keyshortcuts': '/',
    });
    this.search.addEventListener('input', () => actions.change({ search: this.search.value }));
    this.regex = make('button', {
      type: 'button', class: 'search-regex', title: 'Regular expression',
      'aria-label': 'Regular expression',
    }, '.*');
    this.regex.addEventListener('click', () =>
      actions.change({ regex: this.regex.getAttribute('aria-pressed') !== 'true' }));

    this.flip = this.switch(ICONS.flip, 'Root at the bottom (f)', () =>
      actions.change({ flip: this.flip.getAttribute('aria-pressed') !== 'true' }));
    this.safe = this.switch(ICONS.safe, 'Colour-blind safe colours (c)', actions.toggleSafe);
    this.theme = this.switch(ICONS.theme, 'Dark theme (d)', actions.toggleTheme);
    const help = this.switch(ICONS.help, 'Keyboard help (?)', actions.help);
    const mark = icon(ICONS.mark);
    mark.classList.add('brand');

    this.element = make('header', { class: 'bar' },
      inside ? null : make('div', { class: 'bar-title' },
        mark,
        make('h1', { title: profile.title }, profile.title || 'Flame graph'),
        profile.kind === 'diff' ? make('span', { class: 'badge' }, 'diff') : null),
      make('div', { class: 'bar-controls' },
        this.type,
        this.viewButtons(profile),
        make('div', { class: 'search' }, this.search, this.found, this.regex),
        this.options.element,
        make('div', { class: 'group', role: 'group', 'aria-label': 'Display' },
          this.flip, ...(inside ? [] : [this.safe, this.theme]), help)));
  }

  private typeChoice({ types }: Profile): HTMLSelectElement {
    const choice = make('select', { class: 'button', 'aria-label': 'Sample type' },
      ...types.map(({ name, unit }, i) => make('option', { value: i }, typeLabel(name, unit))));
    choice.addEventListener('change', () => this.actions.change({ type: Number(choice.value) }));
    return choice;
  }

  private viewButtons({ times }: Profile): HTMLElement {
    const group = make('div', { class: 'group', role: 'group', 'aria-label': 'View' });
    for (const [view, label] of VIEWS) {
      if (view === 'time' && !times) continue;
      const button = make('button', { type: 'button', class: 'button' }, label);
      button.addEventListener('click', () => this.actions.change({ view }));
      this.views.set(view, button);
      group.append(button);
    }
    return group;
  }

  private switch(path: string, label: string, act: () => void): HTMLButtonElement {
    const button = make('button', {
      type: 'button', class: 'button button-icon', title: label,
      'aria-label': label.replace(/ \(.\)$/, ''),
    }, icon(path));
    button.addEventListener('click', act);
    return button;
  }

  show(state: State, dark: boolean, safe: boolean): void {
    const press = (button: HTMLButtonElement, on: boolean) =>
      button.setAttribute('aria-pressed', String(on));
    if (this.type && this.type.value !== String(state.type)) this.type.value = String(state.type);
    if (this.search.value !== state.search) this.search.value = state.search;
    for (const [view, button] of this.views) press(button, view === state.view);
    this.options.show(state);
    press(this.regex, state.regex);
    press(this.flip, state.flip);
    press(this.safe, safe);
    press(this.theme, dark);
  }

  // The matched share, in as few words as fit into the field.
  showFound(text: string, wrong: boolean): void {
    this.found.textContent = text;
    this.element.classList.toggle('search-wrong', wrong);
    this.search.setAttribute('aria-invalid', String(wrong));
  }
}
