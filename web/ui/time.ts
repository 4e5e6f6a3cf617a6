// SPDX-License-Identifier: Apache-2.0
// Time ranges as the address has them ("now-1h", unix seconds), as the server takes them, and as
// people read them.

export interface Range {
  from: string;
  to: string;
}

// A range at one moment: everything that one view shows is asked for with the same bounds.
export interface Bounds {
  from: number; // unix seconds
  to: number;
}

export const DEFAULT_RANGE: Range = { from: 'now-1h', to: 'now' };

export const QUICK_RANGES: readonly (readonly [string, string])[] = [
  ['now-5m', 'Last 5 minutes'], ['now-15m', 'Last 15 minutes'], ['now-1h', 'Last hour'],
  ['now-3h', 'Last 3 hours'], ['now-12h', 'Last 12 hours'], ['now-1d', 'Last day'],
  ['now-7d', 'Last 7 days'], ['now-14d', 'Last 14 days'],
];

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

// Seconds since 1970, or null when the text is no time.
export function parseTime(text: string, now: number): number | null {
  const trimmed = text.trim();
  const relative = /^now(?:-((?:\d+[smhdw])+))?$/.exec(trimmed);
  if (relative) {
    let back = 0;
    for (const [, count, unit] of (relative[1] ?? '').matchAll(/(\d+)([smhdw])/g))
      back += Number(count) * UNITS[unit];
    return now - back;
  }
  if (/^\d{9,10}(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  const parsed = Date.parse(trimmed);
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

export function isRelative(range: Range): boolean {
  return range.from.startsWith('now') || range.to.startsWith('now');
}

export function boundsOf(range: Range, now = Date.now() / 1000): Bounds {
  const to = parseTime(range.to, now) ?? now;
  const from = parseTime(range.from, now) ?? to - 3600;
  return from < to ? { from, to } : { from: to - 3600, to };
}

// Why a range that an address names can't be shown; '' when it can.
export function rangeProblem(range: Range, now = Date.now() / 1000): string {
  const start = parseTime(range.from, now), end = parseTime(range.to, now);
  const wrong = start === null ? range.from : end === null ? range.to : null;
  if (wrong !== null)
    return `Invalid time “${wrong}”. Use a time such as “now-2h30m”, “2026-11-15 08:00” or unix seconds.`;
  return start! < end! ? '' : 'The range ends before it begins.';
}

// The same for all ranges of an address: the page's own, the one it is compared with, and on a page that
// has a chart with one, the part that is chosen.
export function addressProblem(params: URLSearchParams, now = Date.now() / 1000, hasPart = false): string {
  const from = params.get('base_from'), to = params.get('base_to'), part = params.get('part');
  const problem = rangeProblem(rangeFrom(params), now);
  if (problem !== '') return problem;
  if (hasPart && part !== null && !parseBounds(part)) return `Invalid range “${part}”. Use two unix seconds, such as 1700000000-1700000060.`;
  return from === null && to === null ? '' : rangeProblem({ from: from ?? '0000000000', to: to ?? 'now' }, now);
}

// The shortest usual range that holds everything since a time, when that is shorter than the usual
// one: the first minutes of an installation are not a sliver at the edge of an hour.
export function shortRange(since: number, now: number): Range | null {
  const usual = now - parseTime(DEFAULT_RANGE.from, now)!;
  for (const [from] of QUICK_RANGES) {
    const start = parseTime(from, now)!;
    if (now - start < usual && start <= since) return { from, to: 'now' };
  }
  return null;
}

export function rangeOf(bounds: Bounds): Range {
  return { from: String(Math.floor(bounds.from)), to: String(Math.ceil(bounds.to)) };
}

export function rangeFrom(params: URLSearchParams): Range {
  return {
    from: params.get('from') ?? DEFAULT_RANGE.from,
    to: params.get('to') ?? DEFAULT_RANGE.to,
  };
}

export function rangeParams(range: Range): { from?: string; to?: string } {
  return {
    from: range.from === DEFAULT_RANGE.from ? undefined : range.from,
    to: range.to === DEFAULT_RANGE.to ? undefined : range.to,
  };
}

// The same length, as much earlier.
export function before(bounds: Bounds, seconds = bounds.to - bounds.from): Bounds {
  return { from: bounds.from - seconds, to: bounds.to - seconds };
}

// Around the same middle but wider, and never into the future.
export function wider(bounds: Bounds, now = Date.now() / 1000, factor = 2): Bounds {
  const more = (bounds.to - bounds.from) * (factor - 1) / 2;
  const to = Math.min(bounds.to + more, Math.max(now, bounds.to));
  return { from: to - (bounds.to - bounds.from) * factor, to };
}

// Half a length earlier (-1) or later (1), and never into the future.
export function moved(bounds: Bounds, direction: -1 | 1, now = Date.now() / 1000): Bounds {
  const length = bounds.to - bounds.from;
  const to = Math.min(bounds.to + direction * length / 2, Math.max(now, bounds.to));
  return { from: to - length, to };
}

export type End = 'from' | 'to' | 'both';

// A range whose start, end or both were moved by so many seconds: on whole seconds, within another
// range, and never shorter than `least`.
export function moveEnd(bounds: Bounds, end: End, seconds: number, within: Bounds, least: number): Bounds {
  const { from, to } = bounds;
  const short = Math.min(least, within.to - within.from);
  if (end === 'from')
    return { from: Math.round(Math.max(within.from, Math.min(from + seconds, to - short))), to };
  if (end === 'to')
    return { from, to: Math.round(Math.min(within.to, Math.max(to + seconds, from + short))) };
  const by = Math.round(Math.max(within.from - from, Math.min(seconds, within.to - to)));
  return { from: from + by, to: to + by };
}

// A range in one parameter of an address, as "1700000000-1700000060"; null where there is none.
export function parseBounds(text: string | null): Bounds | null {
  const found = /^(\d{9,10})-(\d{9,10})$/.exec(text ?? '');
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to ? { from, to } : null;
}

export const writeBounds = ({ from, to }: Bounds): string => `${Math.floor(from)}-${Math.ceil(to)}`;

// At least as many points, on round steps; ten seconds is what one window takes.
export function stepOf(bounds: Bounds, points = 300): number {
  const steps = [86400, 43200, 21600, 14400, 7200, 3600, 1800, 1200, 600, 240, 120, 60, 30, 15];
  const most = (bounds.to - bounds.from) / points;
  return steps.find((step) => step <= most) ?? 10;
}

// ---- for people ----

const pad = (value: number) => String(value).padStart(2, '0');

function parts(date: Date, utc: boolean): [string, string] {
  return utc
    ? [`${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`,
      `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}`]
    : [`${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
      `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`];
}

export function formatTime(seconds: number, utc: boolean): string {
  const [day, clock] = parts(new Date(seconds * 1000), utc);
  return `${day} ${clock}${utc ? ' UTC' : ''}`;
}

// As short as can be told: the date only where it isn't that of `now`.
export function formatShort({ from, to }: Bounds, utc: boolean, now = Date.now() / 1000): string {
  const [today] = parts(new Date(now * 1000), utc);
  let day = today;
  return [from, to].map((time) => {
    const [date, clock] = parts(new Date(time * 1000), utc);
    const text = date === day ? clock.slice(0, 5) : `${date.slice(5)} ${clock.slice(0, 5)}`;
    day = date;
    return text;
  }).join(' – ');
}

// A moment on an axis whose marks are `step` seconds apart: only what differs from mark to mark.
export function formatTick(seconds: number, step: number, utc: boolean): string {
  const [day, clock] = parts(new Date(seconds * 1000), utc);
  if (step >= 86400) return day.slice(5);
  if (step < 60) return clock;
  return clock.startsWith('00:00') ? day.slice(5) : clock.slice(0, 5);
}

// The day only where it is not clear from the other end.
export function formatBounds(bounds: Bounds, utc: boolean): string {
  const [fromDay, fromClock] = parts(new Date(bounds.from * 1000), utc);
  const [toDay, toClock] = parts(new Date(bounds.to * 1000), utc);
  const end = fromDay === toDay ? toClock : `${toDay} ${toClock}`;
  return `${fromDay} ${fromClock} – ${end}${utc ? ' UTC' : ''}`;
}

// As short as it is clear: a time of today needs no day.
export function formatRange(range: Range, utc: boolean, now = Date.now() / 1000): string {
  const quick = range.to === 'now' && QUICK_RANGES.find(([from]) => from === range.from);
  if (quick) return quick[1];
  const bounds = boundsOf(range, now);
  const [today] = parts(new Date(now * 1000), utc);
  const [fromDay, fromClock] = parts(new Date(bounds.from * 1000), utc);
  const [toDay, toClock] = parts(new Date(bounds.to * 1000), utc);
  if (fromDay === today && toDay === today) return `${fromClock} – ${toClock}${utc ? ' UTC' : ''}`;
  return formatBounds(bounds, utc);
}

export function formatAge(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export function formatDuration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}
