// SPDX-License-Identifier: Apache-2.0
// The colours of frames. Each theme fixes the lightness in OKLCH, so text keeps its contrast on
// every frame; the hue comes from a hash of the package, or in a diff from the change.

import { isUnnamed, packageOf } from './names';
import { NONE, type StateTotals } from './states';
import { binaryName } from './transform';
import type { Profile } from './data';
import type { ColourBy } from './state';
import type { Graph, Values } from './tree';

export interface Scheme {
  dark: boolean;
  // Only hues that people with any colour vision tell apart, spread by lightness too.
  safe: boolean;
}

// What the painter needs to know about colour.
export interface Look {
  fill(node: number): string;
  ink: string;
  // For frames that a search did not match, and for rest rectangles.
  dimFill: string;
  dimInk: string;
  restFill: string;
}

const HUES = 20;
const SHADES = 3;
// Okabe and Ito's distinguishable hues, as lightness offset, chroma factor and hue.
const SAFE: readonly (readonly [number, number, number])[] = [
  [-0.04, 1.1, 250], [0.03, 1, 230], [0.05, 1.2, 98], [-0.01, 1.2, 68], [0.03, 0.5, 250],
  [-0.06, 0.8, 235], [0.02, 0.6, 85], [-0.05, 1, 90],
];

// Björn Ottosson's OKLab, out to the sRGB hex form that a canvas takes.
export function oklch(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const hex = linear.map((c) => {
    const gamma = c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055;
    const byte = Math.round(255 * Math.min(1, Math.max(0, gamma)));
    return byte.toString(16).padStart(2, '0');
  });
  return `#${hex.join('')}`;
}

// FNV-1a: the same package has the same colour in every page.
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return Math.imul(h, 0x2c1b3c6d) >>> 0;
}

// One row of shades per hue, and a last one of greys for what has no name.
function makePalette(scheme: Scheme): string[][] {
  const base = scheme.dark ? 0.43 : 0.86;
  const row = (lift: number, chroma: number, hue: number) =>
    Array.from({ length: SHADES }, (_, i) =>
      oklch(base + lift + (i - 1) * (scheme.dark ? 0.022 : 0.018), chroma, hue));
  const rows = scheme.safe
    ? SAFE.map(([lift, vivid, hue]) => row(lift, (scheme.dark ? 0.075 : 0.09) * vivid, hue))
    : Array.from({ length: HUES }, (_, i) =>
      row(0, scheme.dark ? 0.066 : 0.075, i * (360 / HUES) + 12));
  return [...rows, row(0, 0.004, 260)];
}

// Relative change of self and total together, from -1 (vanished) to 1 (new).
export function relativeChange(values: Values, node: number): number {
  const after = values.self[node] + values.total[node];
  const before = values.baseSelf && values.baseTotal
    ? values.baseSelf[node] + values.baseTotal[node] : after;
  const larger = Math.max(Math.abs(after), Math.abs(before));
  if (larger === 0) return 0;
  return Math.min(1, Math.max(-1, (after - before) / larger));
}

export const DIFF_STEPS = 8;
// Changes smaller than this share count as unchanged.
export const UNCHANGED = 0.01;

// From -DIFF_STEPS (shrank) over 0 (unchanged) to DIFF_STEPS (grew).
export function diffStep(change: number): number {
  const size = Math.abs(change);
  if (size < UNCHANGED) return 0;
  const step = Math.max(1, Math.ceil(DIFF_STEPS * Math.sqrt(size)));
  return Math.sign(change) * Math.min(DIFF_STEPS, step);
}

export function diffColour(step: number, scheme: Scheme): string {
  const strength = Math.abs(step) / DIFF_STEPS;
  const hue = step > 0 ? (scheme.safe ? 62 : 25) : 253;
  if (step === 0) return scheme.dark ? oklch(0.36, 0.004, 260) : oklch(0.91, 0.003, 260);
  if (scheme.dark) return oklch(0.37 + 0.13 * strength, 0.03 + 0.12 * strength, hue);
  return oklch(0.91 - 0.2 * strength, 0.02 + 0.12 * strength, hue);
}

export function diffWords(scheme: Scheme): string {
  return scheme.safe
    ? 'orange grew, blue shrank, grey unchanged' : 'red grew, blue shrank, grey unchanged';
}

// States have colours of their own, the same on every page: what runs is green, what waits blue, what
// is held up red.
// The lift of lightness is the safe palette's: hues alone are not told apart by everybody.
const STATE_COLOURS: readonly (readonly [pattern: RegExp, hue: number, safe: number, lift: number])[] = [
  [/run|cpu|active/i, 145, 98, 0.03], [/block|lock|contend/i, 25, 62, -0.1],
  [/i\/?o|disk|net|read|write/i, 300, 320, -0.06], [/sleep|wait|idle|park|off/i, 253, 250, 0.02],
];

export function stateColour(name: string, scheme: Scheme): string {
  const unknown = (hash(name) % 24) * 15;
  const [, usual, safe, lift] = STATE_COLOURS.find(([pattern]) => pattern.test(name))
    ?? [null, unknown, unknown, 0];
  const lightness = (scheme.dark ? 0.43 : 0.86) + (scheme.safe ? lift : 0);
  return oklch(lightness, scheme.dark ? 0.085 : 0.09, scheme.safe ? safe : usual);
}

function frame(scheme: Scheme, fill: (node: number) => string): Look {
  return scheme.dark
    ? { fill, ink: '#f1f3f5', dimFill: '#24272d', dimInk: '#7b828c', restFill: '#2c3037' }
    : { fill, ink: '#1b1f24', dimFill: '#f0f1f3', dimInk: '#8b929b', restFill: '#e6e8eb' };
}

// Colours by package or binary, remembered by function. The cache outlives one look: it is shared by all
// graphs of a page and made anew when the scheme changes.
export class PackageColours {
  private readonly known: (string | undefined)[];
  private readonly rows = new Map<string, number>();
  private readonly palette: string[][];

  constructor(
    readonly profile: Profile, readonly scheme: Scheme, readonly by: ColourBy = 'package',
  ) {
    this.known = new Array<string | undefined>(profile.names.length);
    this.palette = makePalette(scheme);
  }

  of(func: number): string {
    const known = this.known[func];
    if (known !== undefined) return known;
    const { names, files, binaries } = this.profile;
    const group = this.by === 'binary'
      ? binaryName(binaries[func]) : packageOf(names[func], files[func], binaries[func]);
    return (this.known[func] = this.pick(group, names[func]));
  }

  // The hue is the package's, the shade the function's own.
  pick(group: string, name: string): string {
    const { palette } = this;
    const grey = palette.length - 1;
    const nothing = this.by === 'binary' ? group === '' : isUnnamed(name);
    const own = hash(name);
    const row = nothing ? grey : group === '' ? own % grey : this.rowOf(group, grey);
    return palette[row][own % SHADES];
  }

  private rowOf(group: string, count: number): number {
    let row = this.rows.get(group);
    if (row === undefined) this.rows.set(group, (row = hash(group) % count));
    return row;
  }
}

// A change that is known to be noise has no colour.
export function makeLook(
  profile: Profile, type: number, graph: Graph, colours: PackageColours,
  states: StateTotals | null = null,
): Look {
  const { scheme } = colours;
  const { func } = graph.tree;
  if (profile.kind === 'diff') {
    const steps: string[] = [];
    for (let s = -DIFF_STEPS; s <= DIFF_STEPS; s++) steps.push(diffColour(s, scheme));
    const findings = profile.findings[type];
    return frame(scheme, (node) => findings.get(func[node])?.verdict === 'noise'
      ? steps[DIFF_STEPS]
      : steps[diffStep(relativeChange(graph.values, node)) + DIFF_STEPS]);
  }
  if (states) {
    const fills = states.names.map((name) => stateColour(name, scheme));
    const none = diffColour(0, scheme);
    return frame(scheme, (node) => (states.main[node] === NONE ? none : fills[states.main[node]]));
  }
  const root = scheme.dark ? oklch(0.36, 0.004, 260) : oklch(0.91, 0.003, 260);
  return frame(scheme, (node) => (func[node] < 0 ? root : colours.of(func[node])));
}
