// SPDX-License-Identifier: Apache-2.0
// Deploys and notes, which charts show where they happened.

import { get } from './api';
import { useLoad } from './load';
import type { Bounds } from './time';

export interface Mark {
  time: number;
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
  const loaded = useLoad(`marks ${service} ${from} ${to}`, (signal) =>
    get<Mark[]>('marks', { service, from: String(from), to: String(to) }, signal));
  return loaded.value ?? NONE;
}
