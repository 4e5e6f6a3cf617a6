// SPDX-License-Identifier: Apache-2.0
// What has no names yet, the most expensive first, and how to give it names: the binaries' debug
// files, uploaded here or from a shell.

import { useMemo, useState } from 'preact/hooks';
import { formatPercent, formatValue, grouped } from '../../flame/data/units';
import type { PageProps } from '../app';
import { get, post } from '../api';
import { useLoad } from '../load';
import { FilePicker } from '../parts/drop';
import { List, sorted, type Column } from '../parts/list';
import { Maps } from '../parts/maps';
import { RangePicker } from '../controls/range';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go, type Params } from '../route';
import { boundsOf, rangeFrom, rangeParams } from '../time';

interface Missing {
  build_id: string;
  file: string;
  service: string;
  value: number;
  share: number; // of its service
  frames: number;
  quality: string | null; // of what is there; null: nothing
}

interface Survey {
  services: { service: string; type: string; named_share: number; total: number }[];
  missing: Missing[];
  cut: boolean;
}

interface Build {
  build_id: string;
  name: string;
  quality: string;
  executable_bytes: number;
  debuginfo_bytes: number;
  index_bytes: number;
}

interface Uploaded {
  build_id: string;
  stored: boolean;
  quality: string;
}

const QUALITY: Record<string, string> = {
  nothing: 'no symbols', starts: 'function starts', dynamic: 'exported symbols',
  symbols: 'all symbols', lines: 'symbols and lines', inlines: 'symbols, lines and inlined functions',
};
const qualityWords = (quality: string | null) => quality === null ? 'nothing' : QUALITY[quality] ?? quality;
const base = (path: string) => path.replace(/^.*\//, '') || path;

function missingColumns(types: Map<string, string>): Column<Missing>[] {
  return [
    { id: 'file', title: 'Binary', order: ({ file }) => base(file),
      cell: ({ file }) => <span class="long-name" title={file}>{base(file) || '(no name)'}</span> },
    { id: 'service', title: 'Service', order: ({ service }) => service,
      cell: ({ service }) => <span class="long-name">{service}</span> },
    { id: 'value', title: 'Unnamed', number: true, order: ({ value }) => value,
      cell: ({ value, service }) => formatValue(value, types.get(service)?.split(':')[2] ?? '') },
    { id: 'share', title: 'Of the service', number: true, order: ({ share }) => share,
      cell: ({ share }) => formatPercent(share) },
    { id: 'frames', title: 'Frames', number: true, minor: true, order: ({ frames }) => frames,
      cell: ({ frames }) => grouped(frames) },
    { id: 'quality', title: 'There is', minor: true, order: ({ quality }) => quality,
      cell: ({ quality }) => qualityWords(quality) },
    { id: 'build', title: 'Build ID', code: true, minor: true, cell: ({ build_id }) => build_id },
  ];
}

const BUILDS: Column<Build>[] = [
  { id: 'name', title: 'Binary', order: ({ name }) => base(name),
    cell: ({ name, build_id }) => <span class="long-name" title={name}>{base(name) || build_id}</span> },
  { id: 'quality', title: 'Gives', order: ({ quality }) => quality, cell: ({ quality }) => qualityWords(quality) },
  { id: 'bytes', title: 'Size', number: true, minor: true,
    order: ({ executable_bytes: a, debuginfo_bytes: b, index_bytes: c }) => a + b + c,
    cell: ({ executable_bytes: a, debuginfo_bytes: b, index_bytes: c }) => formatValue(a + b + c, 'bytes') },
  { id: 'build', title: 'Build ID', code: true, minor: true, cell: ({ build_id }) => build_id },
];

export function Symbols({ route: { params } }: PageProps) {
  const range = rangeFrom(params);
  const sort = params.get('sort') ?? '-value';
  const [asked, setAsked] = useState(() => Date.now() / 1000);
  const [words, setWords] = useState('');
  const [buildSort, setBuildSort] = useState('name');
  const bounds = useMemo(() => boundsOf(range, asked), [range.from, range.to, asked]);
  const survey = useLoad(`${bounds.from} ${bounds.to}`, (signal) => get<Survey>('symbols/missing',
    { from: String(bounds.from), to: String(bounds.to) }, signal));
  const builds = useLoad(`builds ${asked}`, (signal) =>
    get<{ builds: Build[]; bytes: number }>('symbols', {}, signal));
  const types = new Map((survey.value?.services ?? []).map(({ service, type }) => [service, type]));
  const columns = missingColumns(types);
  const show = (change: Params) => go(address('/symbols', {
    ...rangeParams(range), sort: sort === '-value' ? undefined : sort, ...change }), true);

  async function upload(files: File[]) {
    for (const file of files) {
      setWords(`Sending ${file.name}…`);
      try {
        const done = await post<Uploaded>('debuginfo', { name: file.name }, file);
        setWords(`${file.name}: ${done.stored ? 'stored' : 'not better than the stored file'}; it has ${qualityWords(done.quality)}.`);
      } catch (error) {
        setWords(`${file.name}: ${(error as Error).message}`);
        return;
      }
    }
    setAsked(Date.now() / 1000);
  }

  return (
    <div class="page">
      <div class="page-head">
        <h1>Symbols</h1>
        <span class="quiet" role="status">{words}</span>
        <span class="space" />
        <FilePicker label="Upload…" onFiles={(files) => void upload(files)} />
        <RangePicker range={range} onChange={(next) => {
          setAsked(Date.now() / 1000);
          show({ from: undefined, to: undefined, ...rangeParams(next) });
        }} />
      </div>
      <Progress loaded={survey} />
      <Failure loaded={survey} />
      {survey.value?.missing.length === 0 && <Nothing>
        <p>No symbols are missing in this range.</p>
      </Nothing>}
      {survey.value && survey.value.missing.length > 0 && <>
        <List label="Binaries with missing symbols" columns={columns} rows={sorted(survey.value.missing, columns, sort)}
          keyOf={({ build_id, service }) => `${build_id} ${service}`} sort={sort} onSort={(next) => show({ sort: next })} />
        <p class="quality">Upload the debug files of these binaries here, or with{' '}
          <code>assay debuginfo upload --server {location.origin} FILE...</code>
          {survey.value.cut && ' The list is not complete.'}</p>
      </>}
      {builds.value && builds.value.builds.length > 0 && <>
        <div class="page-head"><h2>Stored symbols</h2>
          <span class="quiet">{formatValue(builds.value.bytes, 'bytes')}</span></div>
        <List label="Builds with symbols" columns={BUILDS} rows={sorted(builds.value.builds, BUILDS, buildSort)}
          keyOf={({ build_id }) => build_id} sort={buildSort} onSort={setBuildSort} />
      </>}
      <Maps asked={asked} />
    </div>
  );
}
