// SPDX-License-Identifier: Apache-2.0
// The incident bundle: one file with what a range of a selection looked like, to be opened without
// this server: profiles, pictures, the comparison with the period before, how good the data is, which
// versions ran, what people noted, and how agents were set.

import { call, get, type ProfileType } from '../api';
import { fileName } from './names';
import { labelOf, parseQuery, writeQuery } from '../selection';
import { packed, type TarFile } from './tar';
import { before, type Bounds } from '../time';

const TYPES_MAX = 12;

interface Wanted {
  name: string;
  path: string;
  params: Record<string, string>;
}

const times = ({ from, to }: Bounds) => ({ from: String(from), to: String(to) });

function ofType(query: string, type: string, bounds: Bounds, selected: boolean): Wanted[] {
  const directory = fileName(type.split(':').slice(0, 2).join('-'));
  const earlier = before(bounds);
  const base = { base_query: query, base_from: String(earlier.from), base_to: String(earlier.to) };
  const asked = { query, ...times(bounds) };
  const one = (file: string, path: string, params: Record<string, string>): Wanted =>
    ({ name: `${directory}/${file}`, path: `/api/v1/${path}`, params: { ...asked, ...params } });
  return [
    one('profile.pb.gz', 'profile', { format: 'pprof' }), one('flame.html', 'flame', { format: 'html' }),
    one('top.json', 'top', { limit: '1000' }), one('timeseries.json', 'timeseries', { group_by: 'version' }),
    one('diff-previous.html', 'diff', { ...base, format: 'html' }), one('diff-previous.json', 'diff', { ...base, limit: '1000' }),
    ...(selected ? [one('verdicts.json', 'compare', base)] : []),
  ];
}

// What can't be had is said in the bundle, which is made all the same.
export async function makeBundle(
  query: string, bounds: Bounds, onProgress: (done: number, all: number) => void,
): Promise<[Blob, string]> {
  const selection = parseQuery(query) ?? { type: 'cpu', matchers: [] };
  const service = labelOf(selection, 'service_name');
  const labels = writeQuery({ ...selection, type: '' });
  const types = (await get<ProfileType[]>('types', { query: labels, ...times(bounds) }))
    .map(({ id }) => id).slice(0, TYPES_MAX);
  const plain = (name: string, path: string, params: Record<string, string> = {}): Wanted =>
    ({ name, path: `/api/v1/${path}`, params });
  const wanted = [
    ...types.flatMap((type) => ofType(writeQuery({ ...selection, type }), type, bounds, type.startsWith('process_cpu:cpu'))),
    plain('versions-and-labels.json', 'series', { query: labels, ...times(bounds) }),
    plain('deploys.json', 'marks', { service, ...times(bounds) }), plain('notes.json', 'notes', { service, ...times(bounds) }),
    plain('findings.json', 'findings', {}), plain('server/version.json', 'status/buildinfo'),
    plain('server/health.json', 'health'), plain('server/agents.json', 'agents'), plain('server/orders.json', 'control'),
    plain('server/pins.json', 'pins'),
  ];
  const files: TarFile[] = [];
  const missing: { name: string; reason: string }[] = [];
  for (const [i, { name, path, params }] of wanted.entries()) {
    onProgress(i, wanted.length);
    try {
      files.push({ name, content: new Uint8Array(await (await call(path, params)).arrayBuffer()) });
    } catch (error) {
      missing.push({ name, reason: (error as Error).message });
    }
  }
  onProgress(wanted.length, wanted.length);
  const made = Date.now() / 1000;
  const manifest = {
    query, from: bounds.from, to: bounds.to, compared_with: before(bounds), made, server: location.origin, types,
    requests: wanted.filter(({ name }) => files.some((file) => file.name === name)), missing,
  };
  files.unshift({ name: 'manifest.json', content: new TextEncoder().encode(`${JSON.stringify(manifest, null, 1)}\n`) });
  const directory = `incident-${fileName(service || 'fleet')}-${bounds.from}`;
  const [blob, end] = await packed(files.map(({ name, content }) => ({ name: `${directory}/${name}`, content })), made);
  return [blob, directory + end];
}
