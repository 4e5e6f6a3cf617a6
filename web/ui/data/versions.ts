// SPDX-License-Identifier: Apache-2.0
// Versions as people read them, where a commit's hash is a build; and those of a service, by time.

import { get, type SeriesRow } from '../api';
import { labelOf, writeQuery, type Selection } from '../selection';
import type { Bounds } from '../time';

const HASH = /^[0-9a-f]{12,64}$/;
const HASH_SHOWN = 7;

export function versionName(version: string): string {
  return HASH.test(version) ? `build ${version.slice(0, HASH_SHOWN)}` : version;
}

const DAY = 86400;

export interface Version {
  name: string;
  bounds: Bounds;
}

// The versions of a service in the last two weeks of a range and when they ran, the one that came
// last first.
async function versionsOf(selection: Selection, bounds: Bounds, signal: AbortSignal): Promise<Version[]> {
  const matchers = selection.matchers.filter(({ name }) => name !== 'version');
  const oldest = bounds.to - 14 * DAY;
  const found = await get<SeriesRow[]>('series', {
    query: writeQuery({ ...selection, matchers }), from: String(oldest), to: String(bounds.to),
  }, signal);
  const versions = new Map<string, Bounds>();
  for (const { labels, first, last } of found) {
    if (!labels.version) continue;
    const known = versions.get(labels.version) ?? { from: Infinity, to: 0 };
    versions.set(labels.version, {
      from: Math.max(oldest, Math.min(known.from, first)), to: Math.max(known.to, last) });
  }
  return [...versions].map(([name, bounds]) => ({ name, bounds }))
    .sort((a, b) => b.bounds.from - a.bounds.from);
}

// The selected version, or the last, and the one before it, as far as there are any.
export async function stepOfVersions(selection: Selection, bounds: Bounds, signal: AbortSignal): Promise<Version[]> {
  const versions = await versionsOf(selection, bounds, signal);
  const asked = labelOf(selection, 'version');
  const at = asked === '' ? 0 : versions.findIndex(({ name }) => name === asked);
  return at < 0 ? [] : versions.slice(at, at + 2);
}
