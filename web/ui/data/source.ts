// SPDX-License-Identifier: Apache-2.0
// Source files: where a line can be looked at, and which lines of a text to show beside their cost.

export interface SourceLink {
  service: string;
  url: string; // with {path} and {line}
  commit: string | null;
  strip: string[];
}

// As the server and debuginfod do it; null for what is no file's path.
export function normalPath(path: string): string | null {
  if (path === '' || /[\0-\x1f\x7f]/.test(path)) return null;
  const parts: string[] = [];
  const absolute = path.startsWith('/');
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined && !absolute) return null;
  }
  return parts.length === 0 ? null : (absolute ? '/' : '') + parts.join('/');
}

function withinRepository(path: string, strip: string[]): string | null {
  if (strip.length === 0) return path.startsWith('/') ? null : path;
  for (const prefix of strip) {
    const root = prefix.replace(/\/+$/, '');
    if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  }
  return null;
}

// The first link that fits. What a profile says is escaped, and the address is one of the web.
export function lineLink(links: SourceLink[], file: string, line: number): string | null {
  const path = normalPath(file);
  if (path === null || line <= 0) return null;
  for (const { url, strip } of links) {
    const inside = withinRepository(path, strip);
    if (inside === null || !/^https?:\/\/[^/{}]+\//.test(url)) continue;
    const escaped = inside.split('/').map(encodeURIComponent).join('/');
    return url.replaceAll('{path}', () => escaped).replaceAll('{line}', () => String(line));
  }
  return null;
}

export interface Excerpt<Row> {
  first: number; // its first line's number
  lines: { number: number; text: string; row?: Row }[];
}

// The lines that cost something and some around them, in pieces; null when the text is another
// version: it lacks lines that cost something.
export function excerpts<Row extends { line: number }>(
  text: string, rows: Row[], around = 3,
): Excerpt<Row>[] | null {
  const all = text.split('\n');
  if (all[all.length - 1] === '') all.pop();
  const known = rows.filter(({ line }) => line > 0).sort((a, b) => a.line - b.line);
  if (known.some(({ line }) => line > all.length)) return null;
  const pieces: Excerpt<Row>[] = [];
  for (const row of known) {
    let piece = pieces[pieces.length - 1];
    const shown = piece === undefined ? 0 : piece.first + piece.lines.length - 1;
    const from = Math.max(1, row.line - around), to = Math.min(all.length, row.line + around);
    if (piece === undefined || from > shown + 1)
      pieces.push(piece = { first: from, lines: [] });
    for (let number = piece.first + piece.lines.length; number <= to; number++)
      piece.lines.push({ number, text: (all[number - 1] ?? '').replace(/\r$/, '') });
    const cell = piece.lines[row.line - piece.first];
    if (cell) cell.row = row;
  }
  return pieces;
}
