// SPDX-License-Identifier: Apache-2.0
// Files that a person opened: they stay in this tab, and only what is asked about them goes to the
// server, which forgets them again. Those of `assay view` are already there.

import { get, getBlob, post, postBlob, viewSecret, type Quality } from '../api';
import { WHOLE_FILE } from './more';
import { currentRoute, type Params } from '../route';

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

// Where a file is asked about, and with what.
interface Question {
  path: string;
  params: Params;
  body: BodyInit | null; // null: the server has all it needs
}

function aboutFile(file: OpenFile): Question {
  return file.content === null
    ? { path: `view/flame/${file.index}`, params: {}, body: null }
    : { path: 'files/flame', params: { name: file.name }, body: file.content };
}

function aboutTwo(file: OpenFile, base: Base, normalize: string): Question {
  if (base.kind === 'stored')
    return {
      path: 'files/diff',
      params: { name: file.name, base_name: base.query, base_query: base.query,
        base_from: base.from, base_to: base.to, normalize },
      body: file.content ?? '',
    };
  if (file.content === null || base.file.content === null)
    return {
      path: 'view/diff', body: null,
      params: { normalize, base: String(base.file.index), new: String(file.index) },
    };
  const form = new FormData();
  form.set('base', base.file.content, 'base');
  form.set('new', file.content, 'new');
  return {
    path: 'files/diff', body: form,
    params: { name: file.name, base_name: base.file.name, normalize },
  };
}

// `more` says which part is asked for, where it isn't the whole.
function ask<T>({ path, params, body }: Question, more: Params, signal?: AbortSignal): Promise<T> {
  const all = { ...params, ...more };
  return body === null ? get<T>(path, all, signal) : post<T>(path, all, body, signal);
}

function take({ path, params, body }: Question, format: string): Promise<Blob> {
  const all = { ...params, format };
  return body === null ? getBlob(path, all) : postBlob(path, all, body);
}

export function askFlame(file: OpenFile, signal: AbortSignal, more: Params = WHOLE_FILE): Promise<FileFlame> {
  return ask(aboutFile(file), more, signal);
}

export function askDiff(
  file: OpenFile, base: Base, normalize: string, signal?: AbortSignal, more: Params = WHOLE_FILE,
): Promise<FileDiff> {
  return ask(aboutTwo(file, base, normalize), more, signal);
}

// What is shown, in another format.
export function exportFile(
  file: OpenFile, base: Base | null, normalize: string, format: string,
): Promise<Blob> {
  return take(base ? aboutTwo(file, base, normalize) : aboutFile(file), format);
}
