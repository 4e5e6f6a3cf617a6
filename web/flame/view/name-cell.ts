// SPDX-License-Identifier: Apache-2.0
// A function in a table: its name, shortened as in the graph where there is little room, so that what
// tells it from its neighbours is what stays, and where it comes from if there is room for that, too.

import { make } from '../dom';
import { Labels } from '../data/labels';

const FONT = '13px system-ui, sans-serif';
// Between a name and its origin, and the least that is worth showing of one.
const GAP_PX = 12;
const ORIGIN_PX = 48;
// Widths are sums of characters, and a little more than that is needed at times.
const SLACK = 1.03;

let shared: Labels | null = null;

function labels(): Labels {
  if (shared) return shared;
  const context = make('canvas').getContext('2d');
  if (context) context.font = FONT;
  return (shared = new Labels((text) => SLACK * (context?.measureText(text).width ?? 0)));
}

// `before` stands in front of the name; `room` is what there is for name and origin, in pixels.
export function nameCell(
  before: HTMLElement | null, name: string, origin: string, room: number,
): HTMLElement {
  const aside = origin !== '' && labels().fit(name, room - GAP_PX - ORIGIN_PX) === name;
  const text = (aside ? name : labels().fit(name, room)) || name;
  const cell = make('div', { class: 'table-cell table-name', role: 'gridcell', title: name },
    before, make('span', { class: 'table-function' }, text),
    aside ? make('span', { class: 'quiet' }, origin) : null);
  if (text !== name) cell.setAttribute('aria-label', name);
  return cell;
}
