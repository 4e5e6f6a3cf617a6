// SPDX-License-Identifier: Apache-2.0
// The instructions of a function: which of them to show beside their cost.

export interface Instruction {
  flat: number;
  cum: number;
  address: string;
  instruction: string;
  function: string;
  inlined: string; // the function that the instruction's line is of, where that is inlined
  file: string;
  line: number;
  source: string;
  binary: string;
}

export interface AssemblyAnswer {
  unit: string;
  total: number;
  functions: number;
  read: number;
  lost: number; // value without instructions, and why
  why: string;
  rows: Instruction[];
}

export interface Code {
  function: string;
  binary: string;
  // Instructions with samples and those around them, in pieces.
  pieces: Instruction[][];
  skipped: number[]; // instructions before each piece, and after the last
}

// Functions follow each other in the answer; those of one name in several binaries are apart.
export function codeOf(rows: Instruction[], around = 6): Code[] {
  const out: Code[] = [];
  for (let from = 0; from < rows.length;) {
    const { function: name, binary } = rows[from];
    let to = from;
    while (to < rows.length && rows[to].function === name && rows[to].binary === binary) to++;
    const code: Code = { function: name, binary, pieces: [], skipped: [] };
    let end = from; // of what was taken
    for (let i = from; i < to; i++) {
      if (rows[i].flat === 0 && rows[i].cum === 0) continue;
      const first = Math.max(end, i - around), last = Math.min(to, i + around + 1);
      if (code.pieces.length === 0 || first > end) {
        code.skipped.push(first - end);
        code.pieces.push([]);
      }
      const piece = code.pieces[code.pieces.length - 1];
      piece.push(...rows.slice(Math.max(first, end), last));
      end = Math.max(end, last);
    }
    code.skipped.push(to - end);
    out.push(code);
    from = to;
  }
  return out;
}

const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);

// The place in the source, where it isn't that of the instruction before.
export function placeOf(row: Instruction, before: Instruction | undefined): string {
  if (row.file === '' || row.line === 0) return '';
  if (before && before.file === row.file && before.line === row.line
    && before.inlined === row.inlined) return '';
  const text = row.source === '' ? '' : `  ${row.source}`;
  return `${base(row.file)}:${row.line}${text}${row.inlined === '' ? '' : `  (inlined: ${row.inlined})`}`;
}
