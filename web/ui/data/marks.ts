// SPDX-License-Identifier: Apache-2.0
// Deploys and notes, which charts show where they happened.

import { get } from '../api';
import { useLoad } from '../load';
import { useKept, type Note } from '../saved';
import type { Bounds } from '../time';

export interface Mark {
  time: number;
  until?: number; // of a note at a range
  service: string;
  version: string;
  text: string;
  by: string; // empty: derived from labels
}

export const titleOf = ({ service, version, text }: Mark): string =>
  [version === '' ? '' : `${service} ${version}`, text].filter((part) => part !== '').join(': ');

const NONE: Mark[] = [];

// Of a service, or of all ('').
export function useMarks(service: string, { from, to }: Bounds): Mark[] {
  const kept = useKept();
  const loaded = useLoad(`marks ${service} ${from} ${to} ${kept}`, async (signal) => {
    const asked = { service, from: String(from), to: String(to) };
    const [marks, notes] = await Promise.all([get<Mark[]>('marks', asked, signal), get<Note[]>('notes', asked, signal)]);
    return [...marks, ...notes.map((note): Mark => ({
      time: note.from, until: note.to, service: note.service, version: '', text: note.text, by: note.by }))];
  });
  return loaded.value ?? NONE;
}
