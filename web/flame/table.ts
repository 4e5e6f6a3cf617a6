// SPDX-License-Identifier: Apache-2.0
// The table of functions: the same data as the graph, for reading, sorting and screen readers. Only
// the rows in view are in the page, so fifty thousand functions scroll as smoothly as fifty.

import { makeColumns, rowsOf, sortRows, type Column } from './columns';
import { Lifetime, make } from './dom';
import { functionName, type Profile } from './data';
import { grouped } from './units';
import type { FunctionValues } from './functions';

export interface TableOptions {
  label: string;
  // Fewer columns, for a place beside something else.
  compact: boolean;
  onPick: (func: number) => void;
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

const ROW_PX = 28;
const SPARE_ROWS = 6;
const NARROW_PX = 720;
// Browsers cannot scroll much beyond 17 million pixels.
const MAX_ROWS = 500_000;

let tables = 0;

export class TopTable {
  readonly element: HTMLElement;
  private readonly head = make('div', { class: 'table-head', role: 'row', 'aria-rowindex': 1 });
  private readonly space = make('div', { class: 'table-space', role: 'rowgroup' });
  private readonly empty = make('p', { class: 'table-empty', hidden: true });
  private readonly life = new Lifetime();
  private readonly id = `functions-${++tables}`;
  private shown: TableShown | null = null;
  private columns: Column[] = [];
  private rows: Int32Array = new Int32Array(0);
  private sortKey = '';
  private descending = true;
  private active = -1;
  private frame = 0;

  constructor(private readonly options: TableOptions) {
    this.element = make('div', {
      class: options.compact ? 'table table-compact' : 'table',
      role: 'grid', tabindex: 0, 'aria-label': options.label,
    }, this.head, this.space, this.empty);
    const observer = new ResizeObserver(() => this.rebuild());
    observer.observe(this.element);
    this.life.onEnd(() => observer.disconnect());
    this.life.onEnd(() => cancelAnimationFrame(this.frame));
    this.life.listen(this.element, 'scroll', () => this.schedule(), { passive: true });
    this.life.listen<MouseEvent>(this.space, 'click', (e) => this.click(e));
  }

  destroy(): void {
    this.life.end();
    this.element.remove();
  }

  show(shown: TableShown): void {
    const before = this.shown;
    this.shown = shown;
    if (before?.values === shown.values && before.matched === shown.matched) {
      this.render();
      return;
    }
    this.active = -1;
    this.rebuild();
    this.element.scrollTop = 0;
  }

  private rebuild(): void {
    const { shown } = this;
    if (!shown || this.element.clientWidth === 0) return;
    const narrow = this.options.compact || this.element.clientWidth < NARROW_PX;
    const unit = shown.profile.types[shown.type].unit;
    this.columns = makeColumns(shown.values, unit, shown.whole)
      .filter((column) => !(narrow && column.minor));
    this.element.classList.toggle('table-narrow', narrow);
    this.element.style.setProperty('--columns',
      this.columns.map((column) => `${narrow ? column.narrow : column.width}px`).join(' '));
    // At first: the greatest self value, or the greatest change of it.
    if (this.sortKey === '')
      this.sortKey = (this.columns.find((column) => column.bySize) ?? this.columns[0]).key;
    this.rows = rowsOf(shown.values, shown.matched);
    const column = this.columns.find((c) => c.key === this.sortKey) ?? null;
    sortRows(this.rows, column, shown.profile.names, this.descending);
    if (this.rows.length > MAX_ROWS) this.rows = this.rows.subarray(0, MAX_ROWS);
    this.empty.hidden = this.rows.length > 0;
    this.empty.textContent = shown.matched
      ? 'No function matches the search.' : 'The profile has no values of this type.';
    this.element.setAttribute('aria-rowcount', String(this.rows.length + 1));
    this.space.style.height = `${this.rows.length * ROW_PX}px`;
    this.renderHead(narrow);
    this.render();
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
      cell('name', 'Function', grouped(this.rows.length)),
      ...this.columns.map((column) => cell(column.key, narrow ? column.short : column.label, '')));
    // The button that was pressed is a new one now; the focus stays with its column.
    if (focused) this.head.querySelector<HTMLElement>(`[data-key="${this.sortKey}"]`)?.focus();
  }

  sortBy(key: string): void {
    this.descending = key === this.sortKey ? !this.descending : key !== 'name';
    this.sortKey = key;
    this.active = -1;
    this.rebuild();
    this.element.scrollTop = 0;
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.render());
  }

  private render(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.shown) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - SPARE_ROWS);
    const count = Math.ceil(this.element.clientHeight / ROW_PX) + 2 * SPARE_ROWS;
    const last = Math.min(this.rows.length, first + count);
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    this.space.replaceChildren(...rows);
    if (this.active >= 0) this.element.setAttribute('aria-activedescendant', this.rowId(this.active));
    else this.element.removeAttribute('aria-activedescendant');
  }

  private rowId(index: number): string {
    return `${this.id}-${index}`;
  }

  private row(index: number): HTMLElement {
    const { profile, picked } = this.shown!;
    const func = this.rows[index];
    const name = functionName(profile, func);
    const origin = profile.binaries[func] || profile.files[func];
    const nameCell = make('div', { class: 'table-cell table-name', role: 'gridcell', title: name },
      make('span', { class: 'table-function' }, name));
    if (origin !== '' && !this.options.compact)
      nameCell.append(make('span', { class: 'quiet' }, origin.slice(origin.lastIndexOf('/') + 1)));
    const row = make('div', {
      class: 'table-row', role: 'row', id: this.rowId(index), 'aria-rowindex': index + 2,
      'aria-selected': func === picked ? 'true' : 'false', 'data-row': index,
    }, nameCell, ...this.columns.map((column) => this.cell(column, func)));
    if (index === this.active) row.classList.add('table-active');
    row.style.transform = `translateY(${index * ROW_PX}px)`;
    return row;
  }

  private cell(column: Column, func: number): HTMLElement {
    const cell = make('div', { class: 'table-cell table-number', role: 'gridcell' });
    if (column.bar) {
      const bar = make('span', { class: 'table-bar', 'aria-hidden': 'true' });
      bar.style.transform = `scaleX(${Math.min(1, Math.max(0, column.bar(func) || 0))})`;
      cell.append(bar);
    }
    cell.append(make('span', { class: 'table-value' }, column.text(func)));
    if (column.aside) cell.append(make('span', { class: 'table-aside' }, column.aside(func)));
    if (column.bySize) {
      cell.classList.add('table-change');
      const change = column.value(func);
      cell.classList.toggle('grew', change > 0);
      cell.classList.toggle('shrank', change < 0);
    }
    return cell;
  }

  private click(event: MouseEvent): void {
    const row = (event.target as Element).closest<HTMLElement>('[data-row]');
    if (!row) return;
    this.active = Number(row.dataset.row);
    this.options.onPick(this.rows[this.active]);
  }

  move(step: number): void {
    if (this.rows.length === 0) return;
    this.active = Math.min(this.rows.length - 1, Math.max(0, this.active + step));
    const head = this.head.offsetHeight;
    const top = this.active * ROW_PX;
    const room = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + room)
      this.element.scrollTop = top + ROW_PX - room;
    this.render();
  }

  // The function of the row that the arrow keys reached, or -1.
  activeFunction(): number {
    return this.active >= 0 ? this.rows[this.active] : -1;
  }
}
