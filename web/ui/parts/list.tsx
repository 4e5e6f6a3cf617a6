// SPDX-License-Identifier: Apache-2.0
// A table of things that can be opened: sorted by any of its columns, walked through with the arrow
// keys, and in pages where there are many.

import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { grouped } from '../../flame/data/units';
import { go } from '../route';

export interface Column<T> {
  id: string;
  title: string;
  cell: (row: T) => ComponentChildren;
  // What rows are sorted by; null goes last. A column without it can't be sorted by.
  order?: (row: T) => string | number | null;
  number?: boolean;
  code?: boolean;
  quietTitle?: boolean; // for screen readers only
  minor?: boolean; // left out where there is little room
}

export interface ListProps<T> {
  label: string;
  columns: readonly Column<T>[]; // the first names the row
  rows: readonly T[];
  keyOf: (row: T) => string;
  link?: (row: T) => string;
  sort: string; // a column's id, after a minus when descending
  onSort: (sort: string) => void;
  page?: number; // from 0
  onPage?: (page: number) => void;
}

export const PAGE_ROWS = 50;

export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], sort: string): T[] {
  const down = sort.startsWith('-');
  const order = columns.find(({ id }) => id === sort.replace(/^-/, ''))?.order;
  if (!order) return [...rows];
  const compare = (a: string | number | null, b: string | number | null) => {
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    const by = typeof a === 'string' || typeof b === 'string'
      ? String(a).localeCompare(String(b), undefined, { numeric: true }) : a - b;
    return down ? -by : by;
  };
  return [...rows].sort((a, b) => compare(order(a), order(b)));
}

function Heading<T>(props: { column: Column<T>; sort: string; onSort: (sort: string) => void }) {
  const { column: { id, title, order, number, quietTitle, minor }, sort, onSort } = props;
  const chosen = sort.replace(/^-/, '') === id;
  const down = chosen && sort.startsWith('-');
  const words = quietTitle ? <span class="hidden">{title}</span> : title;
  // Numbers are looked at from the largest, words from the first letter.
  const next = chosen ? (down ? id : `-${id}`) : number ? `-${id}` : id;
  return (
    <th scope="col" class={classes(number && 'number', minor && 'minor')}
      aria-sort={chosen ? (down ? 'descending' : 'ascending') : undefined}>
      {order ? <button type="button" class="link" onClick={() => onSort(next)}>{words}</button> : words}
    </th>
  );
}

const classes = (...names: (string | false | undefined)[]) => names.filter(Boolean).join(' ') || undefined;

// The arrow keys go from one row's link to the next.
function walk(event: KeyboardEvent): void {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (by === 0) return;
  const links = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>('tbody th a')];
  const at = links.findIndex((link) => link.closest('tr')?.contains(event.target as Node));
  const next = links[at + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

export function List<T>(props: ListProps<T>) {
  const { label, columns, rows, keyOf, link, sort, onSort, page = 0, onPage } = props;
  const table = useRef<HTMLTableElement>(null);
  const [name, ...others] = columns;
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  const now = Math.min(Math.max(0, page), pages - 1);
  const shown = onPage ? rows.slice(now * PAGE_ROWS, (now + 1) * PAGE_ROWS) : rows;
  return (
    <>
      <table class={link ? 'table' : 'table plain'} ref={table} aria-label={label} onKeyDown={walk}>
        <thead><tr>
          {columns.map((column) => <Heading key={column.id} column={column} sort={sort} onSort={onSort} />)}
        </tr></thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)} onClick={(event) => {
              if (link && !(event.target as Element).closest('a, button')) go(link(row));
            }}>
              <th scope="row">{link ? <a href={link(row)}>{name.cell(row)}</a> : name.cell(row)}</th>
              {others.map(({ id, cell, number, code, minor }) => (
                <td key={id} class={classes(number && 'number', code && 'code', minor && 'minor')}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {onPage && pages > 1 && (
        <nav class="pages" aria-label={`Pages of ${label}`}>
          <button type="button" class="button" disabled={now === 0} onClick={() => onPage(now - 1)}>Previous</button>
          <span class="quiet">{grouped(now * PAGE_ROWS + 1)}–{grouped(Math.min(rows.length, (now + 1) * PAGE_ROWS))}
            {' '}of {grouped(rows.length)}</span>
          <button type="button" class="button" disabled={now === pages - 1} onClick={() => onPage(now + 1)}>Next</button>
        </nav>
      )}
    </>
  );
}

// "/" goes to the search field of a list, and the down key from there into it.
export function SearchField(props: { label: string; value: string; onChange: (value: string) => void }) {
  const { label, value, onChange } = props;
  return (
    <input class="field search-field" type="search" placeholder={label} aria-label={label} value={value}
      data-search autocomplete="off" spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur();
        if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
        const first = document.querySelector<HTMLElement>('tbody th a');
        if (event.key === 'Enter') first?.click();
        else first?.focus();
        event.preventDefault();
      }} />
  );
}
