// SPDX-License-Identifier: Apache-2.0
// The colours of frames. Each theme fixes the lightness in OKLCH, so text keeps its contrast on
// every frame; the hue comes from a hash of the package, or in a diff from the change.

import { isUnnamed, packageEnd, placeOf } from './data/names';
import { NONE, type StateTotals } from './data/states';
import { binaryName } from './data/transform';
import { isCertain, type Profile } from './data/data';
import type { ColourBy } from './state';
import type { Graph, Values } from './data/tree';

export interface Scheme {
  dark: boolean;
  // Only hues that people with any colour vision tell apart, spread by lightness too.
  safe: boolean;
}

// What the painter needs to know about colour: fills as pixels, inks as text.
export interface Look {
  fill(node: number): number;
  ink: string;
  // For frames that a search did not match, and for rest rectangles.
  dimFill: number;
  dimInk: string;
  restFill: number;
}

const HUES = 20;
// From a hue that is taken to the next that is tried: it meets all of them, of either palette.
const HUE_STEP = 7;
// A frame that is a smaller part of the whole has the hue of its name, whatever is beside it.
const SEEN_PARTS = 1000;
const NO_ROW = -1;
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

// A colour #rrggbb as an image's bytes have it, which is red, green, blue, alpha: browsers run on
// little-endian machines only.
export function pixelOf(colour: string): number {
  const rgb = Number.parseInt(colour.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

// FNV-1a of the text up to `end`: the same package has the same colour in every page.
export function hash(text: string, end = text.length): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < end; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return Math.imul(h, 0x2c1b3c6d) >>> 0;
}

// Tells neighbours apart by some of a name's characters: a first picture has thousands of names. Numbers
// stay small enough to need no memory.
function shadeOf(name: string): number {
  const step = 1 + (name.length >> 4);
  let h = name.length & 0xff;
  for (let i = 0; i < name.length; i += step) h = (31 * h + name.charCodeAt(i)) & 0xffffff;
  return (h ^ (h >> 8)) % SHADES;
}

// Whether two of the palette's rows are taken for one colour; -1 is none.
function isNear(row: number, other: number, count: number): boolean {
  if (other < 0 || other >= count) return false;
  const apart = Math.abs(row - other);
  return Math.min(apart, count - apart) < (count === HUES ? 2 : 1);
}

// One row of shades per hue, and a last one of greys for what has no name, one behind the other.
function makePalette(scheme: Scheme): string[] {
  const base = scheme.dark ? 0.43 : 0.86;
  const row = (lift: number, chroma: number, hue: number) =>
    Array.from({ length: SHADES }, (_, i) =>
      oklch(base + lift + (i - 1) * (scheme.dark ? 0.022 : 0.018), chroma, hue));
  const rows = scheme.safe
    ? SAFE.map(([lift, vivid, hue]) => row(lift, (scheme.dark ? 0.075 : 0.09) * vivid, hue))
    : Array.from({ length: HUES }, (_, i) =>
      row(0, scheme.dark ? 0.066 : 0.075, i * (360 / HUES) + 12));
  return [...rows, row(0, 0.004, 260)].flat();
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
  [/^runnable$/, 95, 98, -0.12], [/run|cpu|active/i, 145, 98, 0.03], [/block|lock|contend/i, 25, 62, -0.1],
  [/net/i, 205, 215, -0.08], [/uring/i, 330, 345, -0.04], [/pipe/i, 350, 10, -0.02], [/child/i, 60, 80, -0.05],
  [/channel/i, 175, 180, -0.01], [/i\/?o|disk|read|write/i, 300, 320, -0.06], [/sleep|wait|idle|park|off/i, 253, 250, 0.02],
];

export function stateColour(name: string, scheme: Scheme): string {
  const unknown = (hash(name) % 24) * 15;
  const [, usual, safe, lift] = STATE_COLOURS.find(([pattern]) => pattern.test(name))
    ?? [null, unknown, unknown, 0];
  const lightness = (scheme.dark ? 0.43 : 0.86) + (scheme.safe ? lift : 0);
  return oklch(lightness, scheme.dark ? 0.085 : 0.09, scheme.safe ? safe : usual);
}

function frame(scheme: Scheme, fill: (node: number) => number): Look {
  const [ink, dimInk, dimFill, restFill] = scheme.dark
    ? ['#f1f3f5', '#7b828c', '#24272d', '#2c3037'] : ['#1b1f24', '#8b929b', '#f0f1f3', '#e6e8eb'];
  return { fill, ink, dimInk, dimFill: pixelOf(dimFill), restFill: pixelOf(restFill) };
}

// Colours by package or binary, remembered by function. The cache outlives one look: it is shared by all
// graphs of a page and made anew when the scheme changes. A package's hue is that of its name's hash,
// unless its caller or the frame beside it has that hue: then it is another.
export class PackageColours {
  private readonly known: Uint32Array; // 0 until somebody asks
  private readonly rows = new Map<string, number>(); // of packages that were given another hue, or kept theirs
  private settled = false;
  private readonly palette: string[];
  private readonly pixels: Uint32Array;

  constructor(
    readonly profile: Profile, readonly scheme: Scheme, readonly by: ColourBy = 'package',
  ) {
    this.known = new Uint32Array(profile.names.length);
    this.palette = makePalette(scheme);
    this.pixels = Uint32Array.from(this.palette, pixelOf);
  }

  of(func: number): number {
    const known = this.known[func];
    if (known !== 0) return known;
    const { names } = this.profile;
    return (this.known[func] = this.pixels[this.row(func) * SHADES + shadeOf(names[func])]);
  }

  pick(name: string, file: string, binary: string): string {
    return this.palette[this.rowOf(name, file, binary) * SHADES + shadeOf(name)];
  }

  // Once, before anything is drawn: tells apart what is beside each other and wide enough to be seen. In
  // the order of the tree, so that a profile has the same colours whatever is looked at first.
  settle({ tree, values: { weight } }: Graph): void {
    if (this.settled) return;
    this.settled = true;
    const least = weight[0] / SEEN_PARTS;
    const grey = this.palette.length / SHADES - 1;
    for (let n = 0; n < tree.size; n++) {
      if (!(weight[n] >= least)) continue;
      const caller = tree.func[n] < 0 ? NO_ROW : this.row(tree.func[n]);
      let beside = NO_ROW;
      for (let c = tree.firstChild[n]; c > 0; c = tree.nextSibling[c]) {
        if (!(weight[c] >= least)) continue;
        const func = tree.func[c];
        const { names, files, binaries } = this.profile;
        const key = this.keyOf(names[func], files[func], binaries[func]);
        if (!this.isNothing(names[func], binaries[func]) && !this.rows.has(key)) {
          let row = hash(key) % grey;
          for (let i = 1; i < grey && (isNear(row, caller, grey) || isNear(row, beside, grey)); i++)
            row = (row + HUE_STEP) % grey;
          this.rows.set(key, row);
        }
        beside = this.row(func);
      }
    }
  }

  private row(func: number): number {
    const { names, files, binaries } = this.profile;
    return this.rowOf(names[func], files[func], binaries[func]);
  }

  // Where in the palette: the hue is the package's, the shade the function's own.
  private rowOf(name: string, file: string, binary: string): number {
    const grey = this.palette.length / SHADES - 1;
    if (this.isNothing(name, binary)) return grey;
    const key = this.keyOf(name, file, binary);
    return this.rows.get(key) ?? hash(key) % grey;
  }

  private isNothing(name: string, binary: string): boolean {
    return this.by === 'binary' ? binary === '' : isUnnamed(name);
  }

  private keyOf(name: string, file: string, binary: string): string {
    if (this.by === 'binary') return binaryName(binary);
    const end = packageEnd(name);
    return end > 0 ? name.slice(0, end) : placeOf(file, binary) || name;
  }
}

// A change that is known to be noise has no colour; nor has the root, which is no function, where
// changes were judged.
export function makeLook(
  profile: Profile, type: number, graph: Graph, colours: PackageColours,
  states: StateTotals | null = null,
): Look {
  const { scheme } = colours;
  const { func } = graph.tree;
  if (profile.kind === 'diff') {
    const steps: number[] = [];
    for (let s = -DIFF_STEPS; s <= DIFF_STEPS; s++) steps.push(pixelOf(diffColour(s, scheme)));
    const findings = profile.findings[type];
    return frame(scheme, (node) => {
      const finding = findings.get(func[node]);
      return (finding ? !isCertain(finding) : func[node] < 0 && findings.size > 0)
        ? steps[DIFF_STEPS] : steps[diffStep(relativeChange(graph.values, node)) + DIFF_STEPS];
    });
  }
  if (states) {
    const fills = states.names.map((name) => pixelOf(stateColour(name, scheme)));
    const none = pixelOf(diffColour(0, scheme));
    return frame(scheme, (node) => (states.main[node] === NONE ? none : fills[states.main[node]]));
  }
  const root = pixelOf(diffColour(0, scheme));
  return frame(scheme, (node) => (func[node] < 0 ? root : colours.of(func[node])));
}
