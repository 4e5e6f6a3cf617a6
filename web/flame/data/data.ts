// SPDX-License-Identifier: Apache-2.0
// Reads one flame-data document (docs/formats/flame-data.md) into typed arrays. Every index and
// length is checked here, once, so that nothing behind this file needs to check again. The
// document comes from profiles and is hostile until it has passed through.

import { cutOf } from './graft';
import { shownName } from './names';
import { STATES_MAX, type States } from './states';
import { beginsOf, type Thread, type Times } from './times';
import type { Tree } from './tree';

export interface SampleType {
  name: string;
  unit: string;
}

export interface Profile {
  kind: 'flame' | 'diff';
  title: string;
  notes: string[];
  types: SampleType[];
  defaultType: number;
  // One entry per function.
  names: string[];
  files: string[];
  binaries: string[];
  // Node 0 is the root; its function is -1.
  tree: Tree;
  // One column per type, one entry per node. `base` is empty unless this is a diff, and is
  // already multiplied by `scale`.
  self: Float64Array[];
  base: Float64Array[];
  scale: number[];
  normalize: string;
  // In a diff: what is known of a function's change, by type and function; most have none.
  findings: Map<number, FunctionFinding>[];
  dropped: number;
  // By type: what is under frames that stand for others, too small to be drawn.
  cut: { value: number[]; base: number[] };
  // Where that is anything: the values of all functions, drawn or not, of the document itself.
  table: FunctionTable | null;
  states: States | null;
  // When samples were taken, where the document says it.
  times?: Times;
  // The sums of everything that was measured, by type, where the tree holds less than that.
  whole?: { value: number[]; base: number[] };
}

// Columns by type, one entry per function.
export interface FunctionTable {
  self: Float64Array[];
  total: Float64Array[];
  baseSelf: Float64Array[];
  baseTotal: Float64Array[];
}

export type Verdict = 'grew' | 'shrank' | 'noise' | 'undecided';

// Why: more requests, or more work for each.
export type Cause = 'requests' | 'cost per request';

// Changes that are not certain have no colour.
export const isCertain = ({ verdict }: Finding) => verdict !== 'noise' && verdict !== 'undecided';

// How sure a change of a function's value is.
export interface Finding {
  // Where the change lies, in the type's unit.
  interval: readonly [low: number, high: number] | null;
  verdict: Verdict | null;
  cause: Cause | null;
  // How much more of each side would settle an undecided change; 0 is unknown.
  moreSeconds: number;
}

// Of its total value, and of its own where that is known.
export interface FunctionFinding extends Finding {
  self?: Finding;
}

// The message is a whole sentence for a person.
export class FlameDataError extends Error {}

const MAX_NODES = 20_000_000;
const MAX_TYPES = 1000;

type Json = Record<string, unknown>;

function fail(sentence: string): never {
  throw new FlameDataError(`The flame data cannot be drawn: ${sentence}`);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

function object(value: unknown, where: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    fail(`${where} is ${show(value)}, but must be an object.`);
  return value as Json;
}

function array(value: unknown, where: string): unknown[] {
  if (!Array.isArray(value)) fail(`${where} is ${show(value)}, but must be an array.`);
  return value;
}

function text(value: unknown, where: string): string {
  if (typeof value !== 'string') fail(`${where} is ${show(value)}, but must be a string.`);
  return value;
}

function integer(value: unknown, low: number, high: number, where: string): number {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > high)
    fail(`${where} is ${show(value)}, but must be a whole number from ${low} to ${high}.`);
  return value as number;
}

function texts(value: unknown, where: string): string[] {
  const column = array(value, where);
  for (let i = 0; i < column.length; i++)
    if (typeof column[i] !== 'string') text(column[i], `${where}[${i}]`);
  return column as string[];
}

function columnOf(value: unknown, length: number, where: string): unknown[] {
  const column = array(value, where);
  if (column.length !== length)
    fail(`${where} has ${column.length} entries, but must have ${length}.`);
  return column;
}

function values(value: unknown, types: number, length: number, where: string): Float64Array[] {
  const columns = columnOf(value, types, where);
  return columns.map((raw, t) => {
    const column = columnOf(raw, length, `${where}[${t}]`);
    const out = new Float64Array(length);
    for (let i = 0; i < length; i++) {
      const entry = column[i] as number;
      if (typeof entry !== 'number' || entry - entry !== 0) // as it is not for what is not finite
        fail(`${where}[${t}][${i}] is ${show(entry)}, but must be a number.`);
      out[i] = entry;
    }
    return out;
  });
}

function readTypes(value: unknown): SampleType[] {
  const list = array(value, 'types');
  if (list.length < 1 || list.length > MAX_TYPES)
    fail(`it has ${list.length} sample types, but must have 1 to ${MAX_TYPES}.`);
  return list.map((entry, i) => {
    const type = object(entry, `types[${i}]`);
    return {
      name: text(type.name, `types[${i}].name`),
      unit: text(type.unit, `types[${i}].unit`),
    };
  });
}

function readFunctions(document: Json) {
  const strings = array(document.strings, 'strings');
  const functions = object(document.functions, 'functions');
  const count = array(functions.name, 'functions.name').length;
  const look = (key: string) => {
    const column = columnOf(functions[key], count, `functions.${key}`);
    const out = new Array<string>(count);
    for (let i = 0; i < count; i++) {
      const string = strings[column[i] as number];
      if (typeof string !== 'string')
        text(strings[integer(column[i], 0, strings.length - 1, `functions.${key}[${i}]`)],
          `strings[${column[i]}]`);
      out[i] = string as string;
    }
    return out;
  };
  return { names: look('name'), files: look('file'), binaries: look('binary') };
}

function readTree(value: unknown, functionCount: number): Tree {
  const nodes = object(value, 'nodes');
  const up = array(nodes.up, 'nodes.up');
  if (up.length >= MAX_NODES)
    fail(`it has ${up.length} nodes; the limit is ${MAX_NODES}.`);
  const listed = columnOf(nodes.function, up.length, 'nodes.function');

  // One loop, since a first picture waits for it, and plain operators, since no compiler has seen it yet.
  // From the last node on, children come in order.
  const size = up.length + 1;
  const parent = new Int32Array(size);
  const func = new Int32Array(size);
  const firstChild = new Int32Array(size);
  const nextSibling = new Int32Array(size);
  for (let node = size - 1; node > 0; node--) {
    const distance = up[node - 1] as number;
    const called = listed[node - 1] as number;
    if ((distance | 0) !== distance || distance < 1 || distance > node)
      integer(distance, 1, node, `nodes.up[${node - 1}]`);
    if ((called | 0) !== called || called < 0 || called >= functionCount)
      integer(called, 0, functionCount - 1, `nodes.function[${node - 1}]`);
    const above = node - distance;
    parent[node] = above;
    func[node] = called;
    nextSibling[node] = firstChild[above];
    firstChild[above] = node;
  }
  parent[0] = -1;
  func[0] = -1;
  return { size, parent, func, inlined: readInlined(nodes.inlined, size), firstChild, nextSibling };
}

function readInlined(value: unknown, size: number): Uint8Array {
  const inlined = new Uint8Array(size);
  let previous = 0;
  array(value, 'nodes.inlined').forEach((entry, i) => {
    previous = integer(entry, previous + 1, size - 1, `nodes.inlined[${i}]`);
    inlined[previous] = 1;
  });
  return inlined;
}

function readScale(value: unknown, types: number): number[] {
  if (value === undefined) return new Array<number>(types).fill(1);
  return columnOf(value, types, 'scale').map((entry, i) => {
    if (!Number.isFinite(entry) || (entry as number) < 0)
      fail(`scale[${i}] is ${show(entry)}, but must be a non-negative number.`);
    return entry as number;
  });
}

function readFinding(entry: Json, where: string): Finding {
  const finding: Finding = { interval: null, verdict: null, cause: null, moreSeconds: 0 };
  if (entry.interval !== undefined) {
    const [low, high] = columnOf(entry.interval, 2, `${where}.interval`) as number[];
    if (!Number.isFinite(low) || !Number.isFinite(high) || low > high)
      fail(`${where}.interval is ${show(entry.interval)}, but must be two numbers in order.`);
    finding.interval = [low, high];
  }
  const { verdict } = entry;
  if (verdict === 'grew' || verdict === 'shrank' || verdict === 'noise' || verdict === 'undecided')
    finding.verdict = verdict;
  else if (verdict !== undefined)
    fail(`${where}.verdict is ${show(verdict)}, but must be "grew", "shrank", "noise" or `
      + '"undecided".');
  const { cause } = entry;
  if (cause === 'requests' || cause === 'cost per request') finding.cause = cause;
  else if (cause !== undefined)
    fail(`${where}.cause is ${show(cause)}, but must be "requests" or "cost per request".`);
  const more = entry.more_seconds ?? 0;
  if (!Number.isFinite(more) || (more as number) < 0)
    fail(`${where}.more_seconds is ${show(more)}, but must be a non-negative number.`);
  finding.moreSeconds = more as number;
  return finding;
}

function readFindings(
  value: unknown, types: number, defaultType: number, functions: number,
): Map<number, FunctionFinding>[] {
  const out = Array.from({ length: types }, () => new Map<number, FunctionFinding>());
  if (value === undefined) return out;
  array(value, 'changes').forEach((raw, i) => {
    const where = `changes[${i}]`;
    const entry = object(raw, where);
    const func = integer(entry.function, 0, functions - 1, `${where}.function`);
    const type = integer(entry.type ?? defaultType, 0, types - 1, `${where}.type`);
    const finding: FunctionFinding = readFinding(entry, where);
    if (entry.self !== undefined)
      finding.self = readFinding(object(entry.self, `${where}.self`), `${where}.self`);
    out[type].set(func, finding);
  });
  return out;
}

function readStates(value: unknown, size: number): States | null {
  if (value === undefined) return null;
  const states = object(value, 'states');
  const names = texts(states.names, 'states.names');
  if (names.length > STATES_MAX)
    fail(`it has ${names.length} states; the limit is ${STATES_MAX}.`);
  return { names, self: values(states.self, names.length, size, 'states.self') };
}

const THREADS_MAX = 100_000;

function readThreads(value: unknown): Thread[] {
  const list = array(value, 'times.threads');
  if (list.length > THREADS_MAX) fail(`it has ${list.length} threads; the limit is ${THREADS_MAX}.`);
  let first = 0;
  return list.map((raw, i) => {
    const where = `times.threads[${i}]`;
    const entry = object(raw, where);
    const count = integer(entry.samples, 1, Number.MAX_SAFE_INTEGER, `${where}.samples`);
    const thread = {
      name: text(entry.name ?? '', `${where}.name`), process: text(entry.process ?? '', `${where}.process`),
      pid: integer(entry.pid ?? 0, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, `${where}.pid`),
      tid: integer(entry.tid ?? 0, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, `${where}.tid`),
      first, count,
    };
    first += count;
    return thread;
  });
}

function readTimes(value: unknown, size: number, states: States | null, unit: string): Times | undefined {
  if (value === undefined) return undefined;
  const times = object(value, 'times');
  const threads = readThreads(times.threads);
  const count = threads.reduce((sum, thread) => sum + thread.count, 0);
  const column = (key: string) => columnOf(times[key], count, `times.${key}`);
  const node = Int32Array.from(column('node'), (entry, i) => integer(entry, 0, size - 1, `times.node[${i}]`));
  const [amounts] = values([times.value], 1, count, 'times.value');
  const at = new Float64Array(count);
  const after = column('after');
  let length = 1;
  for (const thread of threads)
    for (let i = 0, now = 0; i < thread.count; i++) {
      const sample = thread.first + i;
      now += integer(after[sample], 0, Number.MAX_SAFE_INTEGER, `times.after[${sample}]`);
      at[sample] = now;
      length = Math.max(length, now + 1);
    }
  const start = times.start ?? 0;
  if (!Number.isFinite(start) || !Number.isSafeInteger(length)) fail('its times are not finite.');
  const state = times.state === undefined || !states ? null : Int16Array.from(column('state'),
    (entry, i) => integer(entry, -1, states.names.length - 1, `times.state[${i}]`));
  const begin = beginsOf(threads, at, amounts, unit === 'nanoseconds');
  return { start: start as number, length, threads, at, node, value: amounts, state, begin };
}

// `scale` is null unless this is a diff.
function readTable(
  value: unknown, types: number, functions: number, scale: number[] | null,
): FunctionTable | null {
  if (value === undefined) return null;
  const table = object(value, 'table');
  const columns = (key: string) => values(table[key], types, functions, `table.${key}`);
  const scaled = (key: string) => scale
    ? columns(key).map((column, t) => column.map((entry) => entry * scale[t])) : [];
  return {
    self: columns('self'), total: columns('total'),
    baseSelf: scaled('base_self'), baseTotal: scaled('base_total'),
  };
}

// Checks a parsed JSON document and returns what the page draws.
export function readProfile(raw: unknown): Profile {
  const document = object(raw, 'the document');
  if (document.version !== 1)
    fail(`its version is ${show(document.version)}; this page supports version 1 only.`);
  const kind = document.kind;
  if (kind !== 'flame' && kind !== 'diff')
    fail(`its kind is ${show(kind)}, but must be "flame" or "diff".`);

  const types = readTypes(document.types);
  const { names, files, binaries } = readFunctions(document);
  const tree = readTree(document.nodes, names.length);
  const self = values(document.self, types.length, tree.size, 'self');

  let base: Float64Array[] = [];
  let scale = new Array<number>(types.length).fill(1);
  let normalize = 'none';
  if (kind === 'diff') {
    base = values(document.base, types.length, tree.size, 'base');
    scale = readScale(document.scale, types.length);
    if (document.normalize !== undefined) normalize = text(document.normalize, 'normalize');
    base.forEach((column, t) => {
      const factor = scale[t];
      if (factor !== 1) for (let i = 0; i < column.length; i++) column[i] *= factor;
    });
  }

  const table = readTable(document.table, types.length, names.length, kind === 'diff' ? scale : null);
  const defaultType = integer(document.default_type, 0, types.length - 1, 'default_type');
  const states = kind === 'flame' ? readStates(document.states, tree.size) : null;
  const times = kind === 'flame' ? readTimes(document.times, tree.size, states, types[defaultType].unit) : undefined;
  return {
    kind,
    title: text(document.title, 'title'),
    notes: texts(document.notes, 'notes'),
    types,
    defaultType,
    names,
    files,
    binaries,
    tree,
    self,
    base,
    scale,
    normalize,
    findings: readFindings(kind === 'diff' ? document.changes : undefined, types.length,
      defaultType, names.length),
    cut: cutOf(names, tree, self, base),
    table,
    states,
    ...(times ? { times } : {}),
    dropped: integer(document.dropped ?? 0, 0, Number.MAX_SAFE_INTEGER, 'dropped'),
  };
}

export function parseProfile(json: string): Profile {
  let raw: unknown;
  try {
    raw = JSON.parse(json);
  } catch (error) {
    fail(`it is not valid JSON (${(error as Error).message}).`);
  }
  return readProfile(raw);
}

// What a person calls a function; the root of a tree has function -1.
export function functionName(profile: Profile, func: number): string {
  if (func < 0) return 'all';
  return shownName(profile.names[func]) || '(unnamed)';
}

export interface FunctionPlace {
  name: string;
  file: string;
  binary: string;
}

export function functionOf({ names, files, binaries }: Profile, func: number): FunctionPlace {
  return { name: names[func], file: files[func], binary: binaries[func] };
}

// Where a function comes from, in one word: its binary, or its file; '' where its name says it.
export function originOf({ name, file, binary }: FunctionPlace): string {
  const path = binary || file;
  const base = path.slice(path.lastIndexOf('/') + 1);
  return base === name ? '' : shownName(base);
}
