// SPDX-License-Identifier: Apache-2.0
// Files that a person opened: they stay in this tab, and only what is asked about them goes to the
// server, which forgets them again. Those of `assay view` are already there.

import { get, post, viewSecret, type Quality } from './api';
import { currentRoute } from './route';

export interface OpenFile {
  id: string; // in addresses
  name: string;
  bytes: number | null;
  content: Blob | null; // null: the server has it, as number `index`
  index: number;
}

export interface FileFlame {
  format: string;
  quality: Quality;
  flame: unknown;
}

export interface FileDiff {
  base: { format: string; quality: Quality };
  new: { format: string; quality: Quality };
  flame: unknown;
}

// What a file is compared with.
export type Base =
  | { kind: 'file'; file: OpenFile }
  | { kind: 'stored'; query: string; from: string; to: string };

const open: OpenFile[] = [];
const listeners = new Set<() => void>();
let count = 0;

export function openFiles(): readonly OpenFile[] {
  return open;
}

export function findFile(id: string | null): OpenFile | null {
  return open.find((file) => file.id === id) ?? null;
}

export function onFiles(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  for (const listener of listeners) listener();
}

export function addFiles(files: Iterable<File>): OpenFile[] {
  const added = [...files].map((file): OpenFile => ({
    id: String(++count), name: file.name, bytes: file.size, content: file, index: -1,
  }));
  open.push(...added);
  changed();
  return added;
}

export function closeFile(id: string): void {
  const at = open.findIndex((file) => file.id === id);
  if (at >= 0) open.splice(at, 1);
  changed();
}

// The files that the command line of `assay view` named.
export async function loadServed(signal: AbortSignal): Promise<OpenFile[]> {
  const { files } = await get<{ files: string[] }>('view', {}, signal);
  const served = files.map((name, index): OpenFile => (
    { id: `given-${index + 1}`, name, bytes: null, content: null, index }));
  for (const file of served)
    if (!findFile(file.id)) open.push(file);
  changed();
  return served;
}

// Where the page of files is: under `assay view` the address must stay what it is.
export function filesPath(): string {
  return viewSecret !== null ? currentRoute().path : '/files';
}

// Two files that the server can compare: both are with it, or both are here.
export function comparable(a: OpenFile, b: OpenFile): boolean {
  return a.id !== b.id && (a.content === null) === (b.content === null);
}

export function askFlame(file: OpenFile, signal: AbortSignal): Promise<FileFlame> {
  return file.content === null
    ? get<FileFlame>(`view/flame/${file.index}`, {}, signal)
    : post<FileFlame>('files/flame', { name: file.name }, file.content, signal);
}

export function askDiff(
  file: OpenFile, base: Base, normalize: string, signal: AbortSignal,
): Promise<FileDiff> {
  if (base.kind === 'stored')
    return post<FileDiff>('files/diff', {
      name: file.name, base_name: base.query, base_query: base.query, base_from: base.from,
      base_to: base.to, normalize,
    }, file.content ?? '', signal);
  if (file.content === null || base.file.content === null)
    return get<FileDiff>('view/diff', {
      normalize, base: String(base.file.index), new: String(file.index),
    }, signal);
  const form = new FormData();
  form.set('base', base.file.content, 'base');
  form.set('new', file.content, 'new');
  return post<FileDiff>('files/diff',
    { name: file.name, base_name: base.file.name, normalize }, form, signal);
}
