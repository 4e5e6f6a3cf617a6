// SPDX-License-Identifier: Apache-2.0
// How the tree is simplified and coloured: a small panel under a button of the toolbar.

import { icon, Lazy, Lifetime, make } from '../dom';
import { ALL_LIBRARIES, binariesOf, hasLibraries, NO_LIBRARIES } from '../data/transform';
import type { Profile } from '../data/data';
import type { ColourBy, State, WidthBy } from '../state';

const SLIDERS = 'M2 4.5h7M12.5 4.5H14M2 11.5h2M7.5 11.5H14M10.7 2.8a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM5.7 9.8a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4Z';
// A list longer than this is no list to choose from.
const BINARIES_MAX = 500;

// What the page around it has to offer, which may be known later.
export interface Known {
  states: () => boolean;
  splits: () => string[]; // labels
}

class Panel {
  readonly element: HTMLElement;
  private readonly recursion = make('input', { type: 'checkbox', 'aria-label': 'Collapse recursion' });
  private readonly libraries = make('input', { type: 'checkbox', 'aria-label': 'Collapse libraries' });
  private readonly own = make('input', { type: 'checkbox', 'aria-label': 'My code only' });
  private readonly colour = make('select', { class: 'button', 'aria-label': 'Colour by' },
    make('option', { value: 'package' }, 'Package'), make('option', { value: 'binary' }, 'Binary'));
  private readonly width = make('select', { class: 'button', 'aria-label': 'Width' },
    make('option', { value: 'value' }, 'New value'), make('option', { value: 'change' }, 'Size of change'));
  private readonly only = make('select', { class: 'button', 'aria-label': 'Stacks through' });
  private readonly split = make('select', { class: 'button', 'aria-label': 'Split by' });
  private readonly splitRow: HTMLElement;
  private fold: readonly string[] = [];

  constructor(
    profile: Profile, private readonly known: Known, change: (change: Partial<State>) => void,
  ) {
    this.recursion.addEventListener('change', () =>
      change({ recursion: this.recursion.checked }));
    // One or the other, or neither.
    const folding = (input: HTMLInputElement, what: string) => input.addEventListener('change', () => {
      const others = this.fold.filter((one) => one !== ALL_LIBRARIES && one !== NO_LIBRARIES);
      change({ fold: input.checked ? [...others, what] : others });
    });
    folding(this.libraries, ALL_LIBRARIES);
    folding(this.own, NO_LIBRARIES);
    this.colour.addEventListener('change', () =>
      change({ colour: this.colour.value as ColourBy }));
    this.width.addEventListener('change', () => change({ width: this.width.value as WidthBy }));
    this.split.addEventListener('change', () => change({ split: this.split.value, zoom: 0 }));
    this.only.addEventListener('change', () => change({ only: this.only.value }));
    const binaries = binariesOf(profile).slice(0, BINARIES_MAX);
    this.only.append(make('option', { value: '' }, 'All binaries'),
      ...binaries.map((name) => make('option', { value: name }, name)));
    this.libraries.disabled = this.own.disabled = !hasLibraries(profile);
    this.only.disabled = binaries.length < 2;
    const check = (input: HTMLElement, label: string, key: string) =>
      make('label', { class: 'option' }, input, make('span', {}, label), make('kbd', {}, key));
    const choice = (input: HTMLElement, label: string) =>
      make('label', { class: 'option' }, make('span', {}, label), input);
    this.splitRow = choice(this.split, 'Split by');
    this.element = make('div', { class: 'options-panel' },
      check(this.recursion, 'Collapse recursion', 'r'),
      check(this.libraries, 'Collapse libraries', 'l'),
      check(this.own, 'My code only', 'y'),
      choice(this.only, 'Stacks through'),
      profile.kind === 'diff' ? choice(this.width, 'Width') : choice(this.colour, 'Colour by'),
      this.splitRow);
  }

  show(state: State): void {
    if (this.known.states() && this.colour.options.length < 3)
      this.colour.append(make('option', { value: 'state' }, 'State'));
    this.fold = state.fold;
    this.showSplits(state.split);
    this.recursion.checked = state.recursion;
    this.libraries.checked = state.fold.includes(ALL_LIBRARIES);
    this.own.checked = state.fold.includes(NO_LIBRARIES);
    this.colour.value = state.colour;
    this.width.value = state.width;
    this.only.value = state.only;
  }

  private showSplits(split: string): void {
    const labels = this.known.splits();
    this.splitRow.hidden = labels.length === 0;
    const all = ['', ...labels.includes(split) || split === '' ? labels : [split, ...labels]];
    this.split.replaceChildren(...all.map((name) => make('option', { value: name }, name || 'Nothing')));
    this.split.value = split;
  }
}

export class Options {
  readonly element: HTMLDetailsElement;
  private readonly summary = make('summary', {
    class: 'button button-icon', 'aria-label': 'View options', title: 'View options',
  }, icon(SLIDERS));
  // When it is first opened: a first picture should not wait for a list of binaries.
  private readonly panel: Lazy<Panel>;
  private state: State | null = null;

  constructor(
    profile: Profile, known: Known, change: (change: Partial<State>) => void, life: Lifetime,
  ) {
    this.element = make('details', { class: 'options' }, this.summary);
    this.panel = new Lazy(() => {
      const panel = new Panel(profile, known, change);
      this.element.append(panel.element);
      return panel;
    });
    this.summary.addEventListener('click', () => {
      if (this.state) this.panel.get().show(this.state);
    });
    life.listen<PointerEvent>(document, 'pointerdown', (event) => {
      if (!this.element.contains(event.target as Node)) this.element.open = false;
    }, { capture: true });
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.element.open) return;
      this.element.open = false;
      this.summary.focus();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  show(state: State): void {
    this.state = state;
    this.panel.now?.show(state);
    const on = state.recursion || state.fold.length > 0 || state.only !== '' || state.split !== '';
    this.summary.dataset.on = String(on);
  }
}
