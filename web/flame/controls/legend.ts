// SPDX-License-Identifier: Apache-2.0
// The legend: what width and colour mean, the totals, and what the picture leaves out.

import { DIFF_STEPS, diffColour, diffWords, stateColour, type Scheme } from '../colour';
import { make } from '../dom';
import { shownName } from '../data/names';
import { formatChange, formatGrowth, formatPercent, formatValue, grouped, typeLabel } from '../data/units';
import type { Profile } from '../data/data';
import type { ColourBy, WidthBy } from '../state';
import type { StateTotals } from '../data/states';
import type { Graph } from '../data/tree';

// Less than this is rounding.
const LEAST_UNKNOWN = 0.0005;

// The picture's footnote: what isn't drawn frame by frame.
export function cutWords({ cut, types, kind }: Profile, type: number, graph: Graph): string {
  const value = cut.value[type];
  const base = cut.base[type] ?? 0;
  const share = (part: number, whole: number) =>
    `${formatValue(part, types[type].unit)}, ${formatPercent(part / whole)}`;
  if (value === 0 && base === 0) return '';
  return kind === 'diff'
    ? `(other) stands for frames that are too small to draw: ${share(base, graph.wholeBase)} of the base, `
      + `${share(value, graph.whole)} of the new total.`
    : `(other) stands for frames that are too small to draw: ${share(value, graph.whole)} of total.`;
}

export class Legend {
  readonly element = make('div', { class: 'legend' });

  // Hears of the state that alone is to be shown; '' for all.
  constructor(private readonly onState: (name: string) => void) {}

  show(
    profile: Profile, type: number, graph: Graph, scheme: Scheme, colour: ColourBy, width: WidthBy,
    vanished: number, states: StateTotals | null, during: string,
  ): void {
    const parts = profile.kind === 'diff'
      ? this.diff(profile, type, graph, scheme, width, vanished) : this.plain(profile, type, graph, scheme, colour, states, during);
    if (graph.values.weight !== graph.values.total)
      parts.push('Negative values have no width, but are included in the numbers.');
    const cut = cutWords(profile, type, graph);
    if (cut !== '') parts.push(cut);
    this.element.replaceChildren(...parts.map((part) =>
      typeof part === 'string' ? make('span', {}, part) : part));
    this.element.title = parts.map((part) => typeof part === 'string' ? part : part.textContent)
      .filter((text) => text !== '').join(' '); // it is one line, of which the end may be cut off
  }

  private plain(
    profile: Profile, type: number, graph: Graph, scheme: Scheme, colour: ColourBy,
    states: StateTotals | null, during: string,
  ): (string | HTMLElement)[] {
    const { name, unit } = profile.types[type];
    return [
      `Width is ${typeLabel(name, unit)}, ${formatValue(graph.whole, unit)} in total.`,
      states ? 'Colour is the main state of a frame:'
        : colour === 'binary' ? 'Colour is the binary.' : 'Colour is the package or binary.',
      ...(states ? this.states(states, graph, scheme, during) : []),
    ];
  }

  private states(states: StateTotals, graph: Graph, scheme: Scheme, during: string): HTMLElement[] {
    const entry = (colour: string, name: string, value: number, state = '') => {
      const swatch = make('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = colour;
      const words = `${name} ${formatPercent(value / graph.whole)}`;
      if (state === '') return make('span', { class: 'legend-state' }, swatch, words);
      const button = make('button', { type: 'button', class: 'legend-state', 'aria-pressed': String(state === during),
        title: state === during ? 'Show all states' : `Show only the state ${name}` }, swatch, words);
      button.addEventListener('click', () => this.onState(state === during ? '' : state));
      return button;
    };
    const known = states.names.flatMap((name, s) => states.total[s][0] > 0 || name === during
      ? [entry(stateColour(name, scheme), shownName(name), states.total[s][0], name)] : []);
    return states.unknown < LEAST_UNKNOWN * graph.whole
      ? known : [...known, entry(diffColour(0, scheme), 'no state', states.unknown)];
  }

  private diff(
    profile: Profile, type: number, graph: Graph, scheme: Scheme, width: WidthBy, vanished: number,
  ): (string | HTMLElement)[] {
    const { name, unit } = profile.types[type];
    const { whole, wholeBase } = graph;
    const out: (string | HTMLElement)[] = [
      this.ramp(scheme),
      `Width is the ${width === 'change' ? 'size of the change' : 'new value'}; ${diffWords(scheme)}.`,
      `${typeLabel(name, unit)}: ${formatValue(wholeBase, unit)} → ${formatValue(whole, unit)} `
        + `(${formatChange(whole - wholeBase, unit)}, ${formatGrowth(wholeBase, whole)}).`,
      this.normalisation(profile, type),
    ];
    if (profile.findings[type].size > 0)
      out.push('Grey frames and numbers are not certain to have changed.');
    if (vanished > 0)
      out.push(vanished === 1
        ? '1 function was removed: it has no width here and is listed in the table.'
        : `${grouped(vanished)} functions were removed: they have no width here and are listed in `
          + 'the table.');
    return out;
  }

  private normalisation(profile: Profile, type: number): string {
    const factor = profile.scale[type];
    const times = `base values are multiplied by ${Number(factor.toPrecision(4))}`;
    if (profile.normalize === 'total') return `Normalised by total: ${times}.`;
    if (profile.normalize === 'duration') return `Normalised by duration: ${times}.`;
    if (profile.normalize === 'requests') return `Normalised by requests: ${times}.`;
    return factor === 1 ? 'Not normalised.' : `Not normalised by name, but ${times}.`;
  }

  private ramp(scheme: Scheme): HTMLElement {
    const ramp = make('span', { class: 'ramp', role: 'img', 'aria-label': diffWords(scheme) });
    for (let step = -DIFF_STEPS; step <= DIFF_STEPS; step += 2) {
      const swatch = make('span', { class: 'swatch' });
      swatch.style.background = diffColour(step, scheme);
      ramp.append(swatch);
    }
    return ramp;
  }
}
