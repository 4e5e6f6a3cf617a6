// SPDX-License-Identifier: Apache-2.0
// What is hidden and collapsed at the moment, each with a way back.

import { icon, make } from '../dom';
import { functionName, type Profile } from '../data/data';
import { formatSpan, readSpan } from '../data/times';
import { ALL_LIBRARIES, NO_LIBRARIES, type Transform } from '../data/transform';
import type { State } from '../state';

const CLOSE = 'M4 4l8 8M12 4l-8 8';
const NAME_MAX = 60;

export interface Chip {
  text: string;
  // The state without it.
  without: Partial<State>;
}

export type Chipped = Transform & { split?: string };

export function chipsOf(source: Profile, t: Chipped): Chip[] {
  const out: Chip[] = t.hidden.map((func) => ({
    text: `hidden: ${functionName(source, func)}`,
    without: { hidden: t.hidden.filter((one) => one !== func) },
  }));
  if (t.recursion) out.push({ text: 'recursion collapsed', without: { recursion: false } });
  for (const binary of t.fold)
    out.push({
      text: binary === ALL_LIBRARIES ? 'libraries collapsed'
        : binary === NO_LIBRARIES ? 'own code only' : `collapsed: ${binary}`,
      without: { fold: t.fold.filter((one) => one !== binary) },
    });
  if (t.only !== '') out.push({ text: `only through ${t.only}`, without: { only: '' } });
  if (t.during !== '') out.push({ text: `state: ${t.during}`, without: { during: '' } });
  if (t.split) out.push({ text: `split by ${t.split}`, without: { split: '', zoom: 0 } });
  const span = readSpan(t.span);
  if (span) out.push({ text: `time: ${formatSpan(span)}`, without: { span: '' } });
  return out;
}

export class Chips {
  readonly element = make('div', { class: 'filters', role: 'group',
    'aria-label': 'Hidden and collapsed' });

  constructor(private readonly change: (change: Partial<State>) => void) {}

  show(source: Profile, t: Chipped): void {
    const chips = chipsOf(source, t);
    this.element.hidden = chips.length === 0;
    this.element.replaceChildren(...chips.map(({ text, without }) => {
      const short = text.length > NAME_MAX ? `${text.slice(0, NAME_MAX)}…` : text;
      const button = make('button', {
        type: 'button', class: 'filter', title: `Undo: ${text}`, 'aria-label': `Undo: ${text}`,
      }, make('bdi', {}, short), icon(CLOSE));
      button.addEventListener('click', () => this.change(without));
      return button;
    }));
  }
}
