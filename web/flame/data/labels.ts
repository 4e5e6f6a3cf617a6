// SPDX-License-Identifier: Apache-2.0
// Fits names into rectangles: the whole name if there is room, then ever shorter forms down to the
// leaf part, then the leaf part cut with an ellipsis, then nothing.

import { shorterNames } from './names';

const LEAST_PX = 14;
// A name longer than this is never shown whole on a screen.
const LONGEST = 400;
const ELLIPSIS = 0x2026;

export type MeasureText = (text: string) => number;

// Widths are sums of single character widths, measured once each: close enough without kerning,
// and a hundred times cheaper than measuring every name.
export class Labels {
  private readonly plain = new Float64Array(128).fill(-1); // by character code
  private readonly others = new Map<number, number>();
  private readonly forms = new Map<string, string[]>();

  constructor(private readonly measure: MeasureText) {}

  private characterWidth(code: number): number {
    const known = code < this.plain.length ? this.plain[code] : this.others.get(code) ?? -1;
    if (known >= 0) return known;
    const width = this.measure(String.fromCodePoint(code));
    if (code < this.plain.length) this.plain[code] = width;
    else this.others.set(code, width);
    return width;
  }

  // How many of the text's characters there is room for; all of its length when it fits.
  private fitting(text: string, room: number): number {
    let left = room;
    let i = 0;
    while (i < text.length) {
      const code = text.codePointAt(i)!;
      left -= this.characterWidth(code);
      if (left < 0) break;
      i += code > 0xffff ? 2 : 1;
    }
    return i;
  }

  private formsOf(name: string): string[] {
    let forms = this.forms.get(name);
    if (!forms) this.forms.set(name, (forms = shorterNames(name.slice(0, LONGEST))));
    return forms;
  }

  fit(name: string, room: number): string {
    if (room < LEAST_PX) return '';
    if (this.fitting(name, room) === name.length) return name;
    const forms = this.formsOf(name);
    for (const form of forms) if (this.fitting(form, room) === form.length) return form;
    const leaf = forms[forms.length - 1];
    const kept = this.fitting(leaf, room - this.characterWidth(ELLIPSIS));
    return kept >= 2 ? `${leaf.slice(0, kept)}…` : '';
  }
}
