// SPDX-License-Identifier: Apache-2.0
// Fits names into rectangles: the whole name if there is room, then ever shorter forms down to the
// leaf part, then the leaf part cut with an ellipsis, then nothing.

import { shorterNames } from './names';

const LEAST_PX = 14;
// A name longer than this is never shown whole on a screen.
const LONGEST = 400;

interface Form {
  text: string;
  width: number; // -1 until somebody asks
}

export type MeasureText = (text: string) => number;

// Widths are sums of single character widths, measured once each: close enough without kerning,
// and a hundred times cheaper than measuring every name.
export class Labels {
  private readonly plain = new Float64Array(128).fill(-1); // by character code
  private readonly others = new Map<string, number>();
  private readonly forms = new Map<string, Form[]>();

  constructor(private readonly measure: MeasureText) {}

  private characterWidth(c: string): number {
    const code = c.charCodeAt(0);
    if (code < this.plain.length) {
      if (this.plain[code] < 0) this.plain[code] = this.measure(c);
      return this.plain[code];
    }
    let w = this.others.get(c);
    if (w === undefined) this.others.set(c, (w = this.measure(c)));
    return w;
  }

  private width(text: string): number {
    let sum = 0;
    for (const c of text) sum += this.characterWidth(c);
    return sum;
  }

  private formsOf(name: string): Form[] {
    let forms = this.forms.get(name);
    if (!forms) {
      forms = shorterNames(name.slice(0, LONGEST)).map((text) => ({ text, width: -1 }));
      this.forms.set(name, forms);
    }
    return forms;
  }

  fit(name: string, room: number): string {
    if (room < LEAST_PX) return '';
    const forms = this.formsOf(name);
    for (const form of forms) {
      if (form.width < 0) form.width = this.width(form.text);
      if (form.width <= room) return form.text;
    }
    return this.cut(forms[forms.length - 1].text, room);
  }

  private cut(text: string, room: number): string {
    let left = room - this.characterWidth('…');
    let out = '';
    for (const c of text) {
      left -= this.characterWidth(c);
      if (left < 0) break;
      out += c;
    }
    return out.length >= 2 ? `${out}…` : '';
  }
}
