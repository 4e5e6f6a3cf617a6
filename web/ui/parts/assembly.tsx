// SPDX-License-Identifier: Apache-2.0
// A function's instructions, each beside what it costs and the line that it is of. Only `assay view`
// has them: it runs where the binaries are.

import { useEffect, useRef } from 'preact/hooks';
import { shownName } from '../../flame/data/names';
import { formatPercent, formatValue } from '../../flame/data/units';
import { codeOf, placeOf, type AssemblyAnswer, type Code } from '../data/assembly';
import { get } from '../api';
import type { OpenFile } from '../data/files';
import { useLoad } from '../load';
import { Failure, Progress } from './status';

function Listing({ code, answer }: { code: Code; answer: AssemblyAnswer }) {
  const figure = (value: number) => value === 0 ? '' : <>
    {formatValue(value, answer.unit)} <span class="quiet aside">
      {formatPercent(value / answer.total)}</span></>;
  const gap = (count: number) => count > 0 && <tr class="quiet">
    <td colSpan={3} /><td colSpan={2}>{count} instructions without samples</td></tr>;
  return (
    <section>
      <h3 class="code source-file"><bdi>{shownName(code.function)}</bdi>
        <span class="quiet"> in <bdi>{shownName(code.binary)}</bdi></span></h3>
      <div class="source-scroll">
        <table class="table plain source assembly">
          <thead><tr><th scope="col" class="number">Self</th><th scope="col" class="number">Total</th>
            <th scope="col" class="number">Address</th><th scope="col">Instruction</th>
            <th scope="col">Source</th></tr></thead>
          {code.pieces.map((piece, i) => (
            <tbody key={piece[0].address}>
              {gap(code.skipped[i])}
              {piece.map((row, k) => (
                <tr key={row.address} class={row.flat === 0 && row.cum === 0 ? 'quiet' : 'source-hot'}>
                  <td class="number">{figure(row.flat)}</td>
                  <td class="number">{figure(row.cum)}</td>
                  <td class="number code">{row.address}</td>
                  <td class="instruction"><bdi>{shownName(row.instruction)}</bdi></td>
                  <td class="source-line quiet">
                    <bdi>{shownName(placeOf(row, piece[k - 1]).replaceAll('\t', '    '))}</bdi></td>
                </tr>
              ))}
            </tbody>
          ))}
          <tbody>{gap(code.skipped[code.pieces.length])}</tbody>
        </table>
      </div>
    </section>
  );
}

export interface AssemblyProps {
  file: OpenFile;
  name: string;
  type: string; // the sample type that is shown
  onClose: () => void;
}

export function Assembly({ file, name, type, onClose }: AssemblyProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const answer = useLoad(`${file.id} ${type} ${name}`, (signal) =>
    get<AssemblyAnswer>(`view/assembly/${file.index}`, { function: name, type }, signal));
  const { value } = answer;
  return (
    <dialog ref={dialog} class="dialog wide" aria-label="Instructions" onClose={onClose}>
      <h2>Instructions of <bdi>{shownName(name)}</bdi></h2>
      <Progress loaded={answer} />
      <Failure loaded={answer} />
      {value && codeOf(value.rows).map((code, i) => <Listing key={i} code={code} answer={value} />)}
      {value && value.lost > 0 && <p class="quiet">Code
        of {formatValue(value.lost, value.unit)} is not shown: {shownName(value.why)}</p>}
      <div class="dialog-end">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
    </dialog>
  );
}
