// SPDX-License-Identifier: Apache-2.0
// Rows of one height in a scrolling box, of which only those in view are in the page: fifty thousand
// scroll as smoothly as fifty. One of them can be active, for keyboards.

import { Lifetime } from '../dom';

export const ROW_PX = 28;
const SPARE_ROWS = 6;
// Browsers cannot scroll much beyond 17 million pixels.
export const MAX_ROWS = 500_000;

let boxes = 0;

export class Rows {
  active = -1;
  private count = 0;
  private frame = 0;
  private readonly id = `rows-${++boxes}`;

  // `element` scrolls, `space` is as tall as all rows and holds those in view, `head` stays on top.
  constructor(
    private readonly element: HTMLElement, private readonly space: HTMLElement,
    private readonly head: HTMLElement, life: Lifetime,
    private readonly make: (index: number) => HTMLElement,
  ) {
    life.onEnd(() => cancelAnimationFrame(this.frame));
    life.listen(element, 'scroll', () => this.schedule(), { passive: true });
  }

  resize(count: number): void {
    this.count = Math.min(count, MAX_ROWS);
    if (this.active >= this.count) this.active = -1;
    this.element.setAttribute('aria-rowcount', String(this.count + 1));
    this.space.style.height = `${this.count * ROW_PX}px`;
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.render());
  }

  render(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - SPARE_ROWS);
    const shown = Math.ceil(this.element.clientHeight / ROW_PX) + 2 * SPARE_ROWS;
    const last = Math.min(this.count, first + shown);
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
    const row = this.make(index);
    row.id = this.rowId(index);
    row.dataset.row = String(index);
    row.setAttribute('aria-rowindex', String(index + 2));
    if (index === this.active) row.classList.add('table-active');
    row.style.transform = `translateY(${index * ROW_PX}px)`;
    return row;
  }

  // The row that an event happened in, or -1.
  static at(event: Event): number {
    const row = (event.target as Element).closest<HTMLElement>('[data-row]');
    return row ? Number(row.dataset.row) : -1;
  }

  move(step: number): void {
    if (this.count > 0) this.go(Math.min(this.count - 1, Math.max(0, this.active + step)));
  }

  go(index: number): void {
    this.active = index;
    const top = index * ROW_PX;
    const room = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + room)
      this.element.scrollTop = top + ROW_PX - room;
    this.render();
  }
}
