// SPDX-License-Identifier: Apache-2.0
// The types of a service's memory: what it allocates, what is live, and what the kernel says that it
// holds, with the words for each.

import type { ProfileType } from '../api';

// To look at, one at a time, in this order.
const VIEWS: readonly (readonly [sampleType: string, words: string])[] = [
  ['inuse_space', 'Live bytes'], ['inuse_objects', 'Live objects'],
  ['alloc_space', 'Allocated bytes'], ['alloc_objects', 'Allocated objects'],
  ['faulted_anon', 'New anonymous memory'], ['faulted_file', 'New file pages'], ['rss', 'Resident'],
];
// In one chart: all are bytes at a time.
const LEVELS: readonly (readonly [sampleType: string, words: string])[] = [
  ['rss', 'resident'], ['rss_pss', 'proportional (PSS)'], ['inuse_space', 'live in the program'],
  ['rss_swap', 'swap'], ['rss_page_tables', 'page tables'], ['rss_hugetlb', 'huge pages'],
  ['rss_cgroup', 'cgroup'], ['rss_limit', 'limit of the cgroup'],
];

export interface MemoryType {
  id: string;
  words: string;
}

function known(types: readonly ProfileType[], table: typeof VIEWS): MemoryType[] {
  return table.flatMap(([sampleType, words]) => types
    .filter((type) => type.name === 'memory' && type.sample_type === sampleType).slice(0, 1)
    .map(({ id }) => ({ id, words })));
}

export function memoryViews(types: readonly ProfileType[]): MemoryType[] {
  return known(types, VIEWS);
}

export function memoryLevels(types: readonly ProfileType[]): MemoryType[] {
  return known(types, LEVELS);
}

export function isMemory(type: string): boolean {
  return type.startsWith('memory:');
}
