// SPDX-License-Identifier: Apache-2.0
// A function's source text, each line beside what it costs.

import type { ComponentChildren } from 'preact';
import { shownName } from '../../flame/data/names';
import { formatPercent, formatValue } from '../../flame/data/units';
import { call, type LinesAnswer } from '../api';
import { useLoad } from '../load';
import { excerpts, lineLink, type SourceLink } from '../data/source';

type Row = LinesAnswer['lines'][number];

// A place in a file, as a link where the configuration says where it can be looked at.
export function Place(props: { links: SourceLink[]; file: string; line: number;
  children: ComponentChildren }) {
  const url = lineLink(props.links, props.file, props.line);
  if (url === null) return <>{props.children}</>;
  return <a href={url} target="_blank" rel="noopener noreferrer" data-outside
    title={`${shownName(props.file)}:${props.line} in the repository`}>{props.children}</a>;
}

export function SourceText(props: { file: string; build: string; rows: Row[]; answer: LinesAnswer;
  links: SourceLink[]; otherwise: ComponentChildren }) {
  const { file, build, rows, answer, links, otherwise } = props;
  const text = useLoad(`${build} ${file}`, async (signal) =>
    await (await call('/api/v1/source', { build_id: build, path: file }, { signal })).text());
  const pieces = text.value === null ? null : excerpts(text.value, rows);
  if (text.value === null && text.loading) return <p class="quiet">Loading the source…</p>;
  if (pieces === null) return <>{otherwise}</>;
  const figure = (value: number | undefined) => value === undefined || value === 0 ? '' : <>
    {formatValue(value, answer.unit)} <span class="quiet aside">
      {formatPercent(value / answer.total)}</span></>;
  return (
    <section>
      <h3 class="code source-file" title={`${shownName(file)}, of the build ${build}`}>
        <bdi>{shownName(file)}</bdi></h3>
      <div class="source-scroll">
        <table class="table plain source">
          <thead><tr><th scope="col" class="number">Self</th><th scope="col" class="number">Total</th>
            <th scope="col" class="number">Line</th><th scope="col">Source</th></tr></thead>
          {pieces.map((piece) => (
            <tbody key={piece.first}>
              {piece.lines.map(({ number, text: line, row }) => (
                <tr key={number} class={row ? 'source-hot' : 'quiet'}>
                  <td class="number">{figure(row?.flat)}</td>
                  <td class="number">{figure(row?.cum)}</td>
                  <td class="number"><Place links={links} file={file} line={number}>{number}</Place></td>
                  <td class="source-line"><bdi>{shownName(line.replaceAll('\t', '    '))}</bdi></td>
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </div>
    </section>
  );
}
