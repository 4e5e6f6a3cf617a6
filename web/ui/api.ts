// SPDX-License-Identifier: Apache-2.0
// Talking to the server. The token, where the server wants one, goes into a header and never into a
// cookie, so that no other site can make a browser use it.

import { address, namesParam, type Params } from './route';

const KEY = 'assay-token';
// An event whose detail says why the server wants another token than it was given, if any.
export const TOKEN_WANTED = 'assay:token-wanted';

export function wantToken(reason: string): void {
  window.dispatchEvent(new CustomEvent(TOKEN_WANTED, { detail: reason }));
}

// `assay view` serves this page at an address that is its token.
export const viewSecret: string | null =
  /^\/view\/([^/]+)$/.exec(globalThis.location?.pathname ?? '')?.[1] ?? null;

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

function storages(): Storage[] {
  try {
    return [window.sessionStorage, window.localStorage];
  } catch {
    return [];
  }
}

let forgotten: string | null = null; // where the browser keeps nothing

export function token(): string | null {
  if (viewSecret !== null) return viewSecret;
  for (const storage of storages()) {
    const kept = storage.getItem(KEY);
    if (kept) return kept;
  }
  return forgotten;
}

// Kept until the tab closes, or for good when that was asked for.
export function setToken(value: string | null, remember = false): void {
  forgotten = value;
  const [session, local] = storages();
  session?.removeItem(KEY);
  local?.removeItem(KEY);
  if (value !== null) (remember ? local : session)?.setItem(KEY, value);
}

async function errorOf(response: Response): Promise<ApiError> {
  let code = 'unknown', message = `The server answered with ${response.status}.`;
  try {
    const body = await response.json();
    if (typeof body.code === 'string') code = body.code;
    if (typeof body.message === 'string') message = body.message;
  } catch {
    // No JSON: something between us and the server answered.
  }
  return new ApiError(response.status, code, message);
}

export interface Call {
  method?: string;
  body?: BodyInit;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export async function call(path: string, params: Params = {}, options: Call = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const secret = token();
  if (secret) headers.set('Authorization', `Bearer ${secret}`);
  let response: Response;
  try {
    response = await fetch(address(path, params), {
      method: options.method ?? 'GET', body: options.body, signal: options.signal, headers,
      credentials: 'omit', cache: 'no-store', redirect: 'error',
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'unavailable',
      'The server does not answer. Check that it is running and reachable, then try again.');
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401 && viewSecret === null) wantToken(secret ? error.message : '');
  throw error;
}

// What names functions, and takes the choice of names.
const NAMES_FUNCTIONS = new Set(['flame', 'profile', 'top', 'callers', 'lines', 'diff']);
const withNames = (path: string, params: Params): Params =>
  NAMES_FUNCTIONS.has(path) ? { ...namesParam(), ...params } : params;

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const response = await call(`/api/v1/${path}`, withNames(path, params), { signal });
  return await response.json() as T;
}

export async function getBlob(path: string, params: Params): Promise<Blob> {
  return (await call(`/api/v1/${path}`, withNames(path, params))).blob();
}

export async function postBlob(path: string, params: Params, body: BodyInit): Promise<Blob> {
  return (await call(`/api/v1/${path}`, params, { method: 'POST', body })).blob();
}

// A profile, or a form of two, to be looked at or stored.
export async function post<T>(
  path: string, params: Params, body: BodyInit, signal?: AbortSignal,
): Promise<T> {
  const response = await call(`/api/v1/${path}`, params, { method: 'POST', body, signal });
  return await response.json() as T;
}

export async function send<T>(
  method: string, path: string, body: unknown, signal?: AbortSignal,
): Promise<T> {
  const response = await call(`/api/v1/${path}`, {}, {
    method, body: JSON.stringify(body), signal, headers: { 'Content-Type': 'application/json' },
  });
  const text = await response.text();
  return (text === '' ? null : JSON.parse(text)) as T;
}

// ---- what the server answers with ----

export interface ProfileType {
  id: string;
  name: string;
  sample_type: string;
  sample_unit: string;
  period_type: string;
  period_unit: string;
}

// Of services that several observers report: which one an answer uses.
export interface Source {
  service: string;
  source: string;
  by?: string; // the label whose values have different sources
  others?: string[];
  unused: string[];
}

export interface Quality {
  samples: number;
  windows: number;
  series: number;
  first: number;
  last: number;
  duration_seconds: number;
  total: number;
  cut: number;
  damaged_blocks: number;
  damaged_files: number;
  capped_labels?: number;
  unnamed_share?: number | null;
  hosts?: number | null;
  windows_covered?: number | null;
  covered_seconds?: number | null;
  per_seconds?: number | null;
  sources?: Source[];
  dropped?: number | null;
  symbols_requested?: number; // builds that agents were asked for
  symbols_uploading?: number;
}

// Unix seconds, the sum (of a level the average), that per covered second, covered seconds.
export type Point = [time: number, value: number, rate: number | null, covered: number];

export interface TimeSeries {
  // The rest, of so many groups, comes last and has no labels.
  series: { labels: Record<string, string>; rest?: number; points: Point[] }[];
  step_seconds: number;
  type: string;
  quality: Quality;
  // Of the whole selection, within each step: the lowest and the highest value per second of a piece.
  variation?: { piece_seconds: number; points: [time: number, low: number, high: number][] };
}

export interface FlameAnswer {
  quality: Quality;
  price?: { core_hour: number; currency: string }; // of CPU time
  flame: unknown;
}

export interface FunctionRow {
  function: string;
  file: string;
  binary: string;
  cum: number;
}

export interface CallersAnswer {
  type: string;
  unit: string;
  function: string;
  flat: number;
  cum: number;
  total: number;
  quality: Quality;
  callers: FunctionRow[];
  callees: FunctionRow[];
  caller_tree: unknown;
  callee_tree: unknown;
}

export interface DiffFlameAnswer {
  base: { quality: Quality };
  new: { quality: Quality };
  flame: unknown;
}

// Values are per second, share or request; times the new side's exposure they are in the type's unit.
export interface ComparedMeasure {
  base: number;
  new: number;
  low: number | null;
  high: number | null;
  verdict: 'grew' | 'shrank' | 'noise' | 'undecided' | 'too few';
  cause?: 'unknown' | 'requests' | 'cost per request'; // of a certain change
  more_seconds?: number | null; // of each side that would settle an undecided change
}

export interface CompareAnswer {
  method: string;
  hosts: number;
  judged: number;
  found: number;
  requests: string;
  coarse?: number; // functions that are too small to be judged within the memory
  new: { exposure: number; windows: number };
  functions: { function: string; self: ComparedMeasure; total: ComparedMeasure }[];
}

export interface TopAnswer {
  type: string;
  unit: string;
  total: number;
  quality: Quality;
  function_count: number;
  matched?: number; // with a search
  functions: { function: string; file: string; binary: string; flat: number; cum: number }[];
}

export interface DiffAnswer {
  type: string;
  new_total: number;
  scale: number;
  new: { quality: Quality };
  function_count: number;
  matched?: number;
  functions: {
    function: string; file: string; binary: string;
    base_flat: number; base_cum: number; new_flat: number; new_cum: number;
  }[];
}

export interface LinesAnswer {
  type: string;
  unit: string;
  total: number;
  quality: Quality;
  line_count: number;
  lines: { function: string; file: string; binary: string; line: number; flat: number; cum: number }[];
  sources: { file: string; build_id: string }[]; // files whose text there is
}

export interface SeriesRow {
  type: string;
  first: number;
  last: number;
  labels: Record<string, string>;
}

export interface ExemplarsAnswer {
  exemplars: {
    time: number;
    value: number;
    trace_id: string;
    span_id: string;
    labels: Record<string, string>;
    stack: string[]; // the innermost frame first
  }[];
  unit: string;
  more: boolean;
}
