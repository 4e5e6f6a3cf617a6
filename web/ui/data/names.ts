// SPDX-License-Identifier: Apache-2.0
// Names for files and places, made of strings that may hold anything.

// A file's name out of a service's, which may hold anything.
export function fileName(title: string): string {
  return title.replace(/[^\w.-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 60) || 'profile';
}

export function place(file: string, line: number): string {
  if (file === '') return line > 0 ? `line ${line}` : 'unknown';
  return line > 0 ? `${file}:${line}` : file;
}
