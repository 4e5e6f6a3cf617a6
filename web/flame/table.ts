// SPDX-License-Identifier: Apache-2.0
// The table of functions: the same data as the graph, for reading, sorting and screen readers.

import { numberCell } from './cells';
import { fitColumns, makeColumns, rowsOf, sortRows, type Column } from './columns';
import { Lifetime, make } from './dom';
import { functionName, originOf, type Profile } from './data';
import { nameCell } from './name-cell';
import { MAX_ROWS, Rows } from './rows';
import { grouped } from './units';
import type { FunctionValues } from './functions';

export interface TableOptions {
  label: string;
  // Fewer columns, for a place beside something else.
  compact: boolean;
  onPick: (func: number) => void;
  onMenu?: (func: number, clientX: number, clientY: number) => void;
}

export interface TableShown {
  profile: Profile;
  type: number;
  values: FunctionValues;
  whole: number;
  // Only matched functions are listed; null lists all.
  matched: Uint8Array | null;
  // The function that the page is about, or -1.
  picked: number;
}

export class TopTable {
  readonly element: HTMLElement;
  private readonly head = make('div', { class: 'table-head', role: 'row', 'aria-rowindex': 1 });
  private readonly space = make('div', { class: 'table-space', role: 'rowgroup' });
  private readonly empty = make('p', { class: 'table-empty', hidden: true });
  private readonly life = new Lifetime();
  private shown: TableShown | null = null;
  private columns: Column[] = [];
  private room = 0;
  private functions: Int32Array = new Int32Array(0);
  private readonly rows: Rows;
  private sortKey = '';
  private descending = true;

  constructor(private readonly options: TableOptions) {
    this.element = make('div', {
      class: options.compact ? 'table table-compact' : 'table',
      role: 'grid', tabindex: 0, 'aria-label': options.label,
    }, this.head, this.space, this.empty);
    const observer = new ResizeObserver(() => this.rebuild());
    observer.observe(this.element);
    this.life.onEnd(() => observer.disconnect());
    this.rows = new Rows(this.element, this.space, this.head, this.life, (index) => this.row(index));
    this.life.listen<MouseEvent>(this.space, 'click', (e) => this.click(e));
    this.life.listen<MouseEvent>(this.space, 'contextmenu', (e) => {
      const index = Rows.at(e);
      if (index < 0 || !options.onMenu) return;
      e.preventDefault();
      this.rows.go(index);
      options.onMenu(this.functions[index], e.clientX, e.clientY);
    });
  }

  destroy(): void {
    this.life.end();
    this.element.remove();
  }

  show(shown: TableShown): void {
    const before = this.shown;
    this.shown = shown;
    if (before?.values === shown.values && before.matched === shown.matched) {
      this.rows.render();
      return;
    }
    this.rows.active = -1;
    this.rebuild();
    this.element.scrollTop = 0;
  }

  private rebuild(): void {
    const { shown } = this;
    if (!shown || this.element.clientWidth === 0) return;
    const unit = shown.profile.types[shown.type].unit;
    const findings = shown.profile.findings[shown.type];
    const { columns, narrow, room } = fitColumns(this.element,
      makeColumns(shown.values, unit, shown.whole, (func) => findings.get(func)),
      this.options.compact);
    this.columns = columns;
    this.room = room;
    // At first: the greatest self value, or the widest growth of it.
    if (this.sortKey === '')
      this.sortKey = (this.columns.find((column) => column.isChange) ?? this.columns[0]).key;
    this.functions = rowsOf(shown.values, shown.matched);
    const column = this.columns.find((c) => c.key === this.sortKey) ?? null;
    sortRows(this.functions, column, shown.profile.names, this.descending);
    this.functions = this.functions.subarray(0, MAX_ROWS);
    this.empty.hidden = this.functions.length > 0;
    this.empty.textContent = shown.matched
      ? 'No function matches the search.' : 'The profile has no values of this type.';
    this.rows.resize(this.functions.length);
    this.renderHead(narrow);
    this.rows.render();
  }

  private renderHead(narrow: boolean): void {
    const focused = this.head.contains(document.activeElement);
    const cell = (key: string, label: string, aside: string) => {
      const on = this.sortKey === key;
      const button = make('button', { type: 'button', class: 'table-sort', 'data-key': key },
        label, aside === '' ? null : make('span', { class: 'quiet' }, aside));
      if (on) button.append(make('span', { class: 'table-arrow', 'aria-hidden': 'true' },
        this.descending ? '▾' : '▴'));
      button.addEventListener('click', () => this.sortBy(key));
      return make('div', {
        role: 'columnheader', class: 'table-cell',
        'aria-sort': on ? (this.descending ? 'descending' : 'ascending') : 'none',
      }, button);
    };
    this.head.replaceChildren(
      cell('name', 'Function', grouped(this.functions.length)),
      ...this.columns.map((column) => cell(column.key, narrow ? column.short : column.label, '')));
    // The button that was pressed is a new one now; the focus stays with its column.
    if (focused) this.head.querySelector<HTMLElement>(`[data-key="${this.sortKey}"]`)?.focus();
  }

  sortBy(key: string): void {
    this.descending = key === this.sortKey ? !this.descending : key !== 'name';
    this.sortKey = key;
    this.rows.active = -1;
    this.rebuild();
    this.element.scrollTop = 0;
  }

  private row(index: number): HTMLElement {
    const { profile, picked } = this.shown!;
    const func = this.functions[index];
    const cell = nameCell(null, functionName(profile, func),
      this.options.compact ? '' : originOf(profile, func), this.room);
    return make('div', {
      class: 'table-row', role: 'row', 'aria-selected': func === picked ? 'true' : 'false',
    }, cell, ...this.columns.map((column) => numberCell(column, func)));
  }

  private click(event: MouseEvent): void {
    const index = Rows.at(event);
    if (index < 0) return;
    this.rows.active = index;
    this.options.onPick(this.functions[index]);
  }

  move(step: number): void {
    this.rows.move(step);
  }

  // The function of the row that the arrow keys reached, or -1.
  activeFunction(): number {
    return this.rows.active >= 0 ? this.functions[this.rows.active] : -1;
  }
}
