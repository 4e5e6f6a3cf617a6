// SPDX-License-Identifier: Apache-2.0
// Time inside a recording: a heat map of which a dragged range is drawn as a graph, and a row per
// thread that shows what it did when; a click there shows the stack.

import { oklch, stateColour, type PackageColours, type Scheme } from '../colour';
import { functionName, type Profile } from '../data/data';
import { make } from '../dom';
import {
  firstFrom, formatAt, formatSpan, HEAT_ROWS, heatOf, readSpan, threadName, writeSpan,
  type Heat, type Span, type Thread, type Times,
} from '../data/times';
import { pathTo } from '../data/tree';
import { formatValue, grouped, typeLabel } from '../data/units';
import { shownName } from '../data/names';

export interface TimeOptions {
  onSpan: (span: string) => void;
  onFunction: (func: number, clientX: number, clientY: number) => void;
}

const CELL_HEIGHT = 3;
const CELL_WIDTH_MAX = 48;
const HEAT_STEPS = 12;
const ROW_HEIGHT = 18;
const ROWS_MAX = 100;
const NANOSECONDS = 'nanoseconds';

function heatColour(share: number, { dark }: Scheme): string {
  const step = Math.ceil(Math.sqrt(share) * HEAT_STEPS) / HEAT_STEPS;
  return dark ? oklch(0.28 + 0.5 * step, 0.03 + 0.11 * step, 50) : oklch(0.94 - 0.48 * step, 0.03 + 0.12 * step, 40);
}

// A canvas at the screen's own resolution, empty.
function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));

// Hears of a pointer from where it goes down to where it goes up.
function listenForDrag(
  element: HTMLElement, at: (event: PointerEvent) => number,
  moved: (from: number, to: number) => void, done: (from: number, to: number, event: PointerEvent) => void,
): void {
  let from = -1;
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    from = at(event);
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener('pointermove', (event) => {
    if (from >= 0) moved(from, at(event));
  });
  element.addEventListener('pointerup', (event) => {
    if (from >= 0) done(from, at(event), event);
    from = -1;
  });
  element.addEventListener('pointercancel', () => { from = -1; });
}

interface Row {
  thread: Thread;
  element: HTMLElement;
  canvas: HTMLCanvasElement;
}

export class TimeView {
  readonly element: HTMLElement;
  private readonly heatCanvas = make('canvas');
  private readonly heatBox: HTMLElement;
  private readonly heatWords = make('p', { class: 'quiet time-words', role: 'status' });
  private readonly rowsBox = make('div', { class: 'time-rows', role: 'group', 'aria-label': 'Threads' });
  private readonly axis = make('div', { class: 'time-axis quiet', 'aria-hidden': 'true' });
  private readonly legend = make('span', { class: 'time-legend' });
  private readonly stack = make('section', { class: 'time-stack', 'aria-live': 'polite', 'aria-label': 'Stack', hidden: true });
  private readonly observer: ResizeObserver;
  private readonly rows: Row[];
  private heat: Heat;
  private only = -1;
  private span: Span | null = null;
  private dragged: Span | null = null;
  private colours: PackageColours | null = null;
  private cursor = -1; // a cell, moved by keys
  private anchor = -1;
  private picked = -1; // a sample

  constructor(
    private readonly profile: Profile, private readonly times: Times, private readonly options: TimeOptions,
  ) {
    this.heat = heatOf(times, -1);
    this.heatBox = make('div', { class: 'time-heat', tabindex: 0, role: 'application', 'aria-label':
      `Heat map of ${typeLabel(this.type.name, this.type.unit)} over time. Arrow keys move, with Shift they select, and Enter draws `
      + 'the graph of what is selected.' }, this.heatCanvas);
    const all = times.threads.map((thread) => ({ thread, total: this.totalOf(thread) })).sort((a, b) => b.total - a.total);
    this.rows = all.slice(0, ROWS_MAX).map(({ thread, total }, i) => this.makeRow(thread, total, i));
    this.rowsBox.append(...this.rows.map(({ element }) => element));
    const rest = all.length - this.rows.length;
    this.element = make('div', { class: 'time' },
      make('div', { class: 'time-main' },
        this.heatWords,
        this.heatBox,
        make('p', { class: 'time-words' },
          make('b', {}, all.length === 1 ? '1 thread' : `${grouped(all.length)} threads`),
          rest > 0 ? make('span', { class: 'quiet' }, `, the ${ROWS_MAX} largest are shown`) : null, ' ', this.legend),
        this.rowsBox,
        this.axis),
      this.stack);
    this.listen();
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.element);
  }

  private get type() {
    return this.profile.types[this.profile.defaultType];
  }

  private totalOf({ first, count }: Thread): number {
    let sum = 0;
    for (let i = first; i < first + count; i++) sum += this.times.value[i];
    return sum;
  }

  private makeRow(thread: Thread, total: number, index: number): Row {
    const canvas = make('canvas');
    const name = shownName(threadName(thread));
    const words = `${name}: ${formatValue(total, this.type.unit)}`;
    const element = make('div', {
      class: 'time-thread', role: 'application', tabindex: index === 0 ? 0 : -1,
      'aria-label': `${words}. Left and right show the stack of the sample before and after.`,
    }, make('span', { class: 'time-name', title: words, 'aria-hidden': 'true' }, make('bdi', {}, name)), canvas);
    return { thread, element, canvas };
  }

  destroy(): void {
    this.observer.disconnect();
    this.element.remove();
  }

  show(span: string, during: string, colours: PackageColours, byState: boolean): void {
    const only = during === '' ? -1 : this.profile.states?.names.indexOf(during) ?? -1;
    if (only !== this.only) this.heat = heatOf(this.times, only);
    this.only = only;
    this.span = readSpan(span);
    this.dragged = null;
    this.colours = colours;
    this.showLegend(colours.scheme, byState);
    this.paint();
  }

  private showLegend(scheme: Scheme, byState: boolean): void {
    const { states } = this.profile;
    this.legend.replaceChildren(...(byState && states && this.times.state ? states.names.map((name) => {
      const swatch = make('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = stateColour(name, scheme);
      return make('span', { class: 'legend-state' }, swatch, shownName(name));
    }) : [make('span', { class: 'quiet' }, 'coloured by the package of the innermost function')]));
  }

  // ---- pointers and keys ----

  private listen(): void {
    const { heatBox } = this;
    listenForDrag(heatBox, (event) => this.cellAt(event),
      (from, to) => this.mark(from, to), (from, to) => this.choose(from, to));
    heatBox.addEventListener('pointermove', (event) => this.describe(this.cellAt(event)));
    heatBox.addEventListener('pointerleave', () => this.describe(-1));
    heatBox.addEventListener('keydown', (event) => this.heatKey(event));
    this.rows.forEach((row, i) => {
      const at = (event: PointerEvent) => this.timeAt(row, event);
      listenForDrag(row.canvas, at, (from, to) => this.drag(from, to), (from, to, event) => {
        const { from: start, to: end } = this.shown();
        row.element.focus();
        if (Math.abs(to - from) * row.canvas.clientWidth > 4 * (end - start)) this.choose(from, to, false);
        else this.pick(row, this.nearest(row.thread, at(event)));
      });
      row.element.addEventListener('keydown', (event) => this.rowKey(event, row, i));
    });
  }

  // The cell under a pointer, counted column by column.
  private cellAt(event: PointerEvent): number {
    const box = this.heatCanvas.getBoundingClientRect();
    const { columns } = this.heat;
    const column = clamp(Math.floor((event.clientX - box.left) / (box.width / columns)), 0, columns - 1);
    const row = clamp(Math.floor((event.clientY - box.top) / CELL_HEIGHT), 0, HEAT_ROWS - 1);
    return column * HEAT_ROWS + row;
  }

  private get cellLength(): number {
    return this.heat.column / HEAT_ROWS;
  }

  private cellsSpan(from: number, to: number): Span {
    return { from: Math.min(from, to) * this.cellLength, to: (Math.max(from, to) + 1) * this.cellLength };
  }

  private mark(from: number, to: number): void {
    this.dragged = this.cellsSpan(from, to);
    this.describeSpan(this.dragged);
    this.paintHeat();
  }

  private drag(from: number, to: number): void {
    this.dragged = { from: Math.min(from, to), to: Math.max(from, to) };
    this.describeSpan(this.dragged);
    this.paintHeat();
  }

  private choose(from: number, to: number, cells = true): void {
    const span = cells ? this.cellsSpan(from, to) : { from: Math.min(from, to), to: Math.max(from, to) };
    this.options.onSpan(writeSpan({ from: Math.max(0, span.from), to: Math.max(span.to, span.from + 1) }));
  }

  private heatKey(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowUp: -1, ArrowDown: 1, ArrowLeft: -HEAT_ROWS, ArrowRight: HEAT_ROWS };
    const move = moves[event.key];
    if (event.key === 'Enter' && this.cursor >= 0) this.choose(this.anchor, this.cursor);
    else if (move === undefined) return;
    else {
      const next = clamp(this.cursor + move, 0, this.heat.cells.length - 1);
      this.cursor = this.cursor < 0 ? 0 : next;
      if (!event.shiftKey || this.anchor < 0) this.anchor = this.cursor;
      this.mark(this.anchor, this.cursor);
      if (this.anchor === this.cursor) this.describe(this.cursor);
    }
    event.preventDefault();
  }

  private rowKey(event: KeyboardEvent, row: Row, index: number): void {
    const { first, count } = row.thread;
    const inside = this.picked >= first && this.picked < first + count;
    if (event.key === 'ArrowLeft') this.pick(row, inside ? Math.max(first, this.picked - 1) : first);
    else if (event.key === 'ArrowRight') this.pick(row, inside ? Math.min(first + count - 1, this.picked + 1) : first);
    else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const next = this.rows[index + (event.key === 'ArrowUp' ? -1 : 1)];
      if (next) {
        row.element.tabIndex = -1;
        next.element.tabIndex = 0;
        next.element.focus();
      }
    } else return;
    event.preventDefault();
  }

  // ---- one sample ----

  private shown(): Span {
    return this.span ?? { from: 0, to: this.times.length };
  }

  private timeAt({ canvas }: Row, event: PointerEvent): number {
    const box = canvas.getBoundingClientRect();
    const { from, to } = this.shown();
    return from + clamp((event.clientX - box.left) / box.width, 0, 1) * (to - from);
  }

  // A sample says what its thread did until then: the first at or after a time; of two that are far, the
  // nearer.
  private nearest(thread: Thread, time: number): number {
    const after = firstFrom(this.times, thread, time);
    const end = thread.first + thread.count;
    if (after === end) return end - 1;
    const before = after - 1;
    const { at, begin } = this.times;
    return before >= thread.first && begin[after] > time && time - at[before] < begin[after] - time
      ? before : after;
  }

  private pick(row: Row, sample: number): void {
    const { times, profile } = this;
    this.picked = sample;
    const { tree } = profile;
    const path = pathTo(tree, times.node[sample]).slice(1).reverse();
    const state = times.state && times.state[sample] >= 0 ? `${shownName(profile.states!.names[times.state[sample]])}, ` : '';
    this.stack.hidden = false;
    this.stack.replaceChildren(
      make('h2', {}, shownName(threadName(row.thread)), make('span', { class: 'quiet' }, ` at ${formatAt(times.at[sample])}`)),
      make('p', { class: 'quiet' }, `${state}${formatValue(times.value[sample], this.type.unit)}; innermost function first`),
      make('ol', {}, ...path.map((n) => {
        const button = make('button', { type: 'button' }, functionName(profile, tree.func[n]));
        button.addEventListener('click', (event) => this.options.onFunction(tree.func[n], event.clientX, event.clientY));
        return make('li', {}, button);
      })));
    this.paint();
  }

  // ---- words ----

  private describe(cell: number): void {
    if (cell < 0 || this.dragged) {
      if (cell < 0) this.paintWords();
      return;
    }
    this.heatWords.textContent = `${formatSpan(this.cellsSpan(cell, cell))}: ${formatValue(this.heat.cells[cell], this.type.unit)}`;
  }

  private describeSpan(span: Span): void {
    this.heatWords.textContent = `${formatSpan(span)} selected`;
  }

  private paintWords(): void {
    const { column } = this.heat;
    this.heatWords.textContent = `${typeLabel(this.type.name, this.type.unit)} over time: a column is ${formatValue(column * 1000, NANOSECONDS)}, `
      + `a cell ${formatValue(column / HEAT_ROWS * 1000, NANOSECONDS)}, from top to bottom. Drag for the graph of a range.`;
  }

  // ---- painting ----

  private paint(): void {
    if (!this.colours || this.element.offsetWidth === 0) return;
    if (!this.dragged) this.paintWords();
    this.paintHeat();
    this.paintAxis();
    for (const row of this.rows) this.paintRow(row);
  }

  private paintHeat(): void {
    const { heat, colours } = this;
    if (!colours) return;
    const room = this.heatBox.clientWidth;
    const width = Math.min(CELL_WIDTH_MAX, room / heat.columns);
    const context = prepare(this.heatCanvas, width * heat.columns, HEAT_ROWS * CELL_HEIGHT);
    if (!context) return;
    const { scheme } = colours;
    const span = this.dragged ?? this.span;
    const [low, high] = span
      ? [Math.floor(span.from / this.cellLength + 1e-6), Math.ceil(span.to / this.cellLength - 1e-6)] : [0, 0];
    context.fillStyle = scheme.dark ? '#1c1f24' : '#f6f7f9';
    context.fillRect(0, 0, width * heat.columns, HEAT_ROWS * CELL_HEIGHT);
    heat.cells.forEach((value, i) => {
      const chosen = i >= low && i < high;
      if (value <= 0 && !chosen) return;
      const x = Math.floor(i / HEAT_ROWS) * width;
      const y = (i % HEAT_ROWS) * CELL_HEIGHT;
      if (value > 0) {
        context.fillStyle = heatColour(value / heat.most, scheme);
        context.fillRect(x, y, width + 0.5, CELL_HEIGHT);
      }
      if (!chosen) return;
      context.fillStyle = scheme.dark ? 'rgb(142 169 255 / 50%)' : 'rgb(48 86 211 / 40%)';
      context.fillRect(x, y, width + 0.5, CELL_HEIGHT);
    });
  }

  private paintAxis(): void {
    const { from, to } = this.shown();
    const precision = (to - from) / 10;
    this.axis.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((share) =>
      make('span', {}, formatAt(from + share * (to - from), precision))));
  }

  private colourOf(i: number): string {
    const { profile, times } = this;
    const { scheme } = this.colours!;
    const state = times.state?.[i] ?? -1;
    if (state >= 0 && profile.states) return stateColour(profile.states.names[state], scheme);
    const func = profile.tree.func[times.node[i]];
    return func < 0 ? (scheme.dark ? '#3a3f47' : '#d5d9de')
      : this.colours!.pick(profile.names[func], profile.files[func], profile.binaries[func]);
  }

  private paintRow({ thread, canvas, element }: Row): void {
    const width = element.clientWidth - canvas.offsetLeft;
    const context = prepare(canvas, Math.max(1, width), ROW_HEIGHT - 2);
    if (!context) return;
    const { times } = this;
    const { from, to } = this.shown();
    const scale = width / (to - from);
    const end = thread.first + thread.count;
    let drawn = -1;
    for (let i = firstFrom(times, thread, from); i < end; i++) {
      const begin = times.begin[i];
      if (begin >= to) break;
      if (this.only >= 0 && times.state?.[i] !== this.only) continue;
      const right = Math.max((times.at[i] - from) * scale, (begin - from) * scale + 1);
      if (right < drawn + 0.5) continue;
      const left = Math.max(drawn, (begin - from) * scale, 0);
      context.fillStyle = this.colourOf(i);
      context.fillRect(left, 0, Math.max(0.5, right - left), ROW_HEIGHT - 2);
      drawn = right;
    }
    if (this.picked < thread.first || this.picked >= end) return;
    context.fillStyle = this.colours!.scheme.dark ? '#ffffff' : '#14171b';
    context.fillRect((times.at[this.picked] - from) * scale - 1, 0, 2, ROW_HEIGHT - 2);
  }
}
