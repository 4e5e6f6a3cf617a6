// SPDX-License-Identifier: Apache-2.0
// A number in a table: its text, a quieter one beside it, a bar, and the colour of a change.

import { make } from '../dom';
import { isCertain } from '../data/data';
import type { Column } from '../data/columns';

export function numberCell(column: Column, index: number): HTMLElement {
  const cell = make('div', { class: 'table-cell table-number', role: 'gridcell' });
  if (column.bar) {
    const bar = make('span', { class: 'table-bar', 'aria-hidden': 'true' });
    bar.style.transform = `scaleX(${Math.min(1, Math.max(0, column.bar(index) || 0))})`;
    cell.append(bar);
  }
  cell.append(make('span', { class: 'table-value' }, column.text(index)));
  if (column.aside) cell.append(make('span', { class: 'table-aside' }, column.aside(index)));
  if (!column.isChange) return cell;
  const finding = column.finding?.(index);
  const change = column.value(index);
  const noise = finding !== undefined && !isCertain(finding);
  cell.classList.add('table-change');
  cell.classList.toggle('noise', noise);
  cell.classList.toggle('grew', !noise && change > 0);
  cell.classList.toggle('shrank', !noise && change < 0);
  if (noise)
    cell.title = finding.verdict === 'undecided'
      ? 'Undecided: suspicious alone, but not among so many functions.'
      : 'Within the noise of the measurement.';
  return cell;
}
