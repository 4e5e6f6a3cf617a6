// SPDX-License-Identifier: Apache-2.0
// Profiles from files: dropped on the page, drawn, compared with another or with what is stored.
// They are stored only when somebody asks for that.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import type { PageProps } from '../app';
import { viewSecret } from '../api';
import {
  askDiff, askFlame, closeFile, comparable, exportFile, filesPath, findFile, loadServed, onFiles,
  openFiles,
  type Base, type FileDiff, type FileFlame, type OpenFile,
} from '../data/files';
import { useLoad } from '../load';
import { moreParams, WHOLE_FILE } from '../data/more';
import { Assembly } from '../parts/assembly';
import { DropZone, FilePicker, openAndShow } from '../parts/drop';
import { DIFFERENCES, Export, foldedOf } from '../parts/export';
import { Flame } from '../parts/flame';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { StoreFile } from '../parts/store-file';
import { address, go, type Params } from '../route';
import { parseQuery, writeQuery } from '../selection';
import { formatBounds, boundsOf, type Range } from '../time';
import { formatValue, grouped } from '../../flame/data/units';
import { useSettings } from '../settings';

const STORED = 'stored';
const NORMALIZE: readonly (readonly [string, string])[] = [
  ['', 'Per second, if known'], ['duration', 'Per second'], ['total', '% of total'], ['none', 'Raw'],
];

function useFiles(): readonly OpenFile[] {
  const [, render] = useState(0);
  useEffect(() => onFiles(() => render((n) => n + 1)), []);
  return openFiles();
}

function baseOf(params: URLSearchParams, file: OpenFile | null): Base | null {
  const query = params.get('base_query');
  if (query !== null) {
    return { kind: 'stored', query, from: params.get('base_from') ?? 'now-1h',
      to: params.get('base_to') ?? 'now' };
  }
  const other = findFile(params.get('base'));
  return other && file && comparable(other, file) ? { kind: 'file', file: other } : null;
}

// What a file says about itself, in the words of the server's notes.
function Facts({ file, answer }: { file: OpenFile; answer: FileFlame }) {
  const { utc } = useSettings();
  const notes = (answer.flame as { notes?: string[] }).notes ?? [];
  const { first, last } = answer.quality;
  const facts = [
    answer.format,
    file.bytes === null ? '' : formatValue(file.bytes, 'bytes'),
    first > 0 ? formatBounds({ from: first, to: last }, utc) : '',
    ...notes.map((note) => note.replace(/\.$/, '')),
  ].filter((fact) => fact !== '');
  return <p class="quality" aria-label="Contents of this file">{facts.join(' · ')}</p>;
}

function Sides({ answer, file, base }: { answer: FileDiff; file: OpenFile; base: Base }) {
  const side = (title: string, name: string, { format, quality }: FileDiff['new']) => (
    <p class="quality"><b>{title}: </b>{[name, format, `${grouped(quality.samples)} samples`]
      .filter((fact) => fact !== '').join(' · ')}</p>
  );
  return (
    <>
      {side('Before', base.kind === 'file' ? base.file.name : base.query, answer.base)}
      {side('After', file.name, answer.new)}
    </>
  );
}

interface Shown {
  view: string;
  onView: OnView;
  onApp: (app: FlameApp | null) => void;
}

function One({ file, view, onView, onApp }: Shown & { file: OpenFile }) {
  const [asm, setAsm] = useState<{ name: string; type: string } | null>(null);
  const answer = useLoad(file.id, (signal) => askFlame(file, signal));
  const current = answer.loading || answer.error ? null : answer.value;
  return (
    <>
      <Progress loaded={answer} />
      <Failure loaded={answer} />
      {current && <>
        <Facts file={file} answer={current} />
        <Flame key={file.id} data={current.flame} state={view} onState={onView} onApp={onApp}
          onAssembly={file.content === null ? (name, type) => setAsm({ name, type }) : undefined}
          more={async (path, again, signal) =>
            (await askFlame(file, signal, moreParams(path, again))).flame} />
        {asm && <Assembly file={file} {...asm} onClose={() => setAsm(null)} />}
      </>}
    </>
  );
}

type OnView = (view: string, step: boolean) => void;

function Two(props: Shown & { file: OpenFile; base: Base; normalize: string }) {
  const { file, base, normalize, view, onView, onApp } = props;
  const against = base.kind === 'file' ? base.file.id : `${base.query} ${base.from} ${base.to}`;
  const key = `${file.id} ${against} ${normalize}`;
  const answer = useLoad(key, (signal) => askDiff(file, base, normalize, signal));
  const current = answer.loading || answer.error ? null : answer.value;
  return (
    <>
      <Progress loaded={answer} />
      <Failure loaded={answer} />
      {current && <>
        <Sides answer={current} file={file} base={base} />
        <Flame key={key} data={current.flame} state={view} onState={onView} onApp={onApp}
          more={async (path, again, signal) =>
            (await askDiff(file, base, normalize, signal, moreParams(path, again))).flame} />
      </>}
    </>
  );
}

function StoredBase({ base, show }: { base: Base & { kind: 'stored' }; show: (change: Params) => void }) {
  const range: Range = { from: base.from, to: base.to };
  const bounds = useMemo(() => boundsOf(range), [base.from, base.to]);
  return (
    <SelectionBar title="Before" selection={parseQuery(base.query) ?? { type: 'cpu', matchers: [] }}
      range={range} bounds={bounds}
      onChange={(selection, next) => show({
        base_query: writeQuery(selection), base_from: next.from, base_to: next.to, flame: undefined,
      })} />
  );
}

export function Files({ route }: PageProps) {
  const { params } = route;
  const files = useFiles();
  const flameApp = useRef<FlameApp | null>(null);
  const [storing, setStoring] = useState(false);
  const served = useLoad(viewSecret, loadServed);
  const file = findFile(params.get('file')) ?? (params.has('file') ? null : files[files.length - 1] ?? null);
  const base = baseOf(params, file);
  const normalize = params.get('normalize') ?? '';

  // Two files on the command line are there to be compared.
  useEffect(() => {
    if (served.value && !params.has('file') && served.value.length > 1)
      go(address(filesPath(), { file: served.value[1].id, base: served.value[0].id }), true);
  }, [served.value]);

  function show(change: Params, replace = false) {
    const now: Params = { ...Object.fromEntries(params), ...change };
    go(address(filesPath(), now), replace);
  }
  const onView: OnView = (flame, step) => show({ flame }, !step);
  const shown: Shown = {
    view: params.get('flame') ?? '', onView, onApp: (app) => { flameApp.current = app; } };
  const others = file ? files.filter((other) => comparable(other, file)) : [];

  function compareWith(value: string) {
    const none: Params = { base: undefined, base_query: undefined, base_from: undefined,
      base_to: undefined, flame: undefined };
    show(value === STORED ? { ...none, base_query: 'cpu{}', base_from: 'now-1h', base_to: 'now' }
      : { ...none, base: value });
  }

  if (!file) {
    return (
      <div class="page">
        <Progress loaded={served} />
        <Failure loaded={served} />
        {params.has('file') && !served.loading && <Nothing>
          <p>Files are kept in the tab that opened them, and this one doesn't have that file: open
            it again.</p>
        </Nothing>}
        {!served.loading && <DropZone />}
      </div>
    );
  }
  return (
    <div class="page explore">
      <div class="page-head" role="group" aria-label="Selection">
        <h1 class="file-name" title={file.name}>{file.name}</h1>
        {files.length > 1 && <select class="button" aria-label="File" value={file.id}
          onChange={(event) => go(address(filesPath(), { file: event.currentTarget.value }))}>
          {files.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select>}
        <label class="inline">compared with <select class="button" aria-label="Compared with"
          value={base === null ? '' : base.kind === 'file' ? base.file.id : STORED}
          onChange={(event) => compareWith(event.currentTarget.value)}>
          <option value="">nothing</option>
          {others.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
          {viewSecret === null && <option value={STORED}>stored profiles</option>}
        </select></label>
        {base && <select class="button" aria-label="Normalization" value={normalize}
          onChange={(event) => show({ normalize: event.currentTarget.value })}>
          {NORMALIZE.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
        </select>}
        <span class="space" />
        <Export title={file.name.replace(/(\.pb|\.folded|\.json|\.jfr|\.txt)?(\.gz|\.zst)?$/, '')}
          formats={base ? DIFFERENCES : undefined} picture={() => flameApp.current?.picture()}
          make={async (format) => base && format === 'folded'
            ? foldedOf((await askDiff(file, base, normalize, undefined, WHOLE_FILE)).flame)
            : exportFile(file, base, normalize, format)} />
        {viewSecret === null && file.content && <button type="button" class="button"
          onClick={() => setStoring(true)}>Store…</button>}
        <FilePicker label="Open…" onFiles={openAndShow} />
        <button type="button" class="button" onClick={() => {
          closeFile(file.id);
          go(filesPath());
        }}>Close</button>
      </div>
      {base?.kind === 'stored' && <StoredBase base={base} show={show} />}
      {base
        ? <Two file={file} base={base} normalize={normalize} {...shown} />
        : <One file={file} {...shown} />}
      {storing && file.content
        && <StoreFile file={file} content={file.content} onClose={() => setStoring(false)} />}
    </div>
  );
}
