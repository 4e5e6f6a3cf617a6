// SPDX-License-Identifier: Apache-2.0
// The table of functions: the same data as the graph, for reading, sorting and screen readers.

import { numberCell } from './cells';
import { fitColumns, makeColumns, rowsOf, sortRows, type Column } from '../data/columns';
import { Lifetime, make } from '../dom';
import { functionName, functionOf, originOf, type Profile } from '../data/data';
import { nameCell } from './name-cell';
import { shownName } from '../data/names';
import { MAX_ROWS, Rows } from './rows';
import { grouped } from '../data/units';
import type { FunctionValues } from '../data/functions';

export interface TableOptions {
  label: string;
  // Fewer columns, for a place beside something else.
  compact: boolean;
  onPick: (func: number) => void;
  // A row whose function the picture doesn't have.
  onPickName?: (name: string) => void;
  onMenu?: (func: number, clientX: number, clientY: number) => void;
  // Other rows are wanted of a table that somebody else ranks.
  onRank?: () => void;
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
  // Rows that somebody else has ranked; then `values` are theirs, and null lists all functions.
  ranked: Ranked | null;
}

export interface TableRow {
  name: string;
  file: string;
  binary: string;
  self: number;
  total: number;
  baseSelf: number;
  baseTotal: number;
}

// Which rows of a table are wanted.
export interface Ranking {
  // A column's key, or 'name'; '' for the first one's.
  sort: string;
  descending: boolean;
  limit: number;
}

export interface Ranked {
  rows: readonly TableRow[];
  // The function of each row in the picture; -1 where it isn't there.
  funcs: Int32Array;
  // How many there are.
  count: number;
  // Why there are no rows yet; '' when there are.
  note: string;
}

// Rows that are asked for at first, and by how much more when somebody has scrolled to the end.
export const FIRST_ROWS = 1000;
const MORE_ROWS = 4;
const MOST_ROWS = 100_000;

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
  private limit = FIRST_ROWS;

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
      const func = this.funcAt(index);
      if (func >= 0) options.onMenu(func, e.clientX, e.clientY);
    });
    this.life.listen(this.element, 'scroll', () => this.askMore(), { passive: true });
  }

  // What a table that somebody else ranks is to have.
  get ranking(): Ranking {
    return { sort: this.sortKey, descending: this.descending, limit: this.limit };
  }

  private funcAt(index: number): number {
    const row = this.functions[index];
    return this.shown?.ranked ? this.shown.ranked.funcs[row] : row;
  }

  private askMore(): void {
    const ranked = this.shown?.ranked;
    if (!ranked || ranked.rows.length === 0 || ranked.rows.length >= ranked.count) return;
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    if (scrollTop + clientHeight < scrollHeight - 2 * clientHeight || this.limit >= MOST_ROWS) return;
    this.limit = Math.min(MOST_ROWS, this.limit * MORE_ROWS);
    this.options.onRank?.();
  }

  destroy(): void {
    this.life.end();
    this.element.remove();
  }

  show(shown: TableShown): void {
    const before = this.shown;
    this.shown = shown;
    if (before?.values === shown.values && before.matched === shown.matched
      && before.ranked?.note === shown.ranked?.note) {
      this.rows.render();
      return;
    }
    const grown = before?.ranked && shown.ranked && before.ranked.count === shown.ranked.count
      && before.ranked.rows.length > 0;
    if (!grown) this.rows.active = -1;
    this.rebuild();
    if (!grown) this.element.scrollTop = 0;
  }

  private rebuild(): void {
    const { shown } = this;
    if (!shown || this.element.clientWidth === 0) return;
    const unit = shown.profile.types[shown.type].unit;
    const findings = shown.profile.findings[shown.type];
    const { columns, narrow, room } = fitColumns(this.element,
      makeColumns(shown.values, unit, shown.whole,
        (row) => findings.get(shown.ranked ? shown.ranked.funcs[row] : row), findings.size > 0),
      this.options.compact);
    this.columns = columns;
    this.room = room;
    // At first: the greatest self value, or the widest growth of it.
    if (this.sortKey === '')
      this.sortKey = (this.columns.find((column) => column.isChange) ?? this.columns[0]).key;
    const column = this.columns.find((c) => c.key === this.sortKey) ?? null;
    const { ranked } = shown;
    this.functions = rowsOf(shown.values, ranked ? null : shown.matched);
    sortRows(this.functions, column, ranked ? ranked.rows.map((row) => row.name) : shown.profile.names,
      this.descending);
    this.functions = this.functions.subarray(0, MAX_ROWS);
    this.empty.hidden = this.functions.length > 0;
    this.empty.textContent = ranked?.note || (shown.matched
      ? 'No function matches the search.' : 'The profile has no values of this type.');
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
      cell('name', 'Function', this.countWords()),
      ...this.columns.map((column) => cell(column.key, narrow ? column.short : column.label, '')));
    // The button that was pressed is a new one now; the focus stays with its column.
    if (focused) this.head.querySelector<HTMLElement>(`[data-key="${this.sortKey}"]`)?.focus();
  }

  private countWords(): string {
    const rows = this.functions.length;
    const count = this.shown?.ranked?.count ?? rows;
    return count > rows ? `${grouped(rows)} of ${grouped(count)}` : grouped(rows);
  }

  sortBy(key: string): void {
    this.descending = key === this.sortKey ? !this.descending : key !== 'name';
    this.sortKey = key;
    const ranked = this.shown?.ranked;
    if (ranked && ranked.rows.length < ranked.count) {
      this.limit = FIRST_ROWS;
      this.options.onRank?.();
    }
    this.rows.active = -1;
    this.rebuild();
    this.element.scrollTop = 0;
  }

  private row(index: number): HTMLElement {
    const { profile, picked, ranked } = this.shown!;
    const id = this.functions[index];
    const func = this.funcAt(index);
    const name = ranked ? shownName(ranked.rows[id].name) || '(unnamed)' : functionName(profile, func);
    const origin = ranked ? originOf(ranked.rows[id]) : originOf(functionOf(profile, func));
    const cell = nameCell(null, name, this.options.compact ? '' : origin, this.room);
    return make('div', {
      class: 'table-row', role: 'row',
      'aria-selected': func >= 0 && func === picked ? 'true' : 'false',
    }, cell, ...this.columns.map((column) => numberCell(column, id)));
  }

  private click(event: MouseEvent): void {
    const index = Rows.at(event);
    if (index < 0) return;
    this.rows.active = index;
    this.pick(index);
  }

  private pick(index: number): void {
    const func = this.funcAt(index);
    const row = this.shown?.ranked?.rows[this.functions[index]];
    if (func >= 0) this.options.onPick(func);
    else if (row) this.options.onPickName?.(row.name);
  }

  move(step: number): void {
    this.rows.move(step);
  }

  // The function of the row that the arrow keys reached, or -1.
  activeFunction(): number {
    return this.rows.active >= 0 ? this.funcAt(this.rows.active) : -1;
  }
}
