// SPDX-License-Identifier: Apache-2.0
// Source maps and mapping files that were sent, by service and version.

import { useState } from 'preact/hooks';
import { formatValue } from '../../flame/data/units';
import { get } from '../api';
import { useLoad } from '../load';
import { List, sorted, type Column } from './list';

interface NameMap {
  id: string;
  kind: string;
  service: string;
  version: string;
  name: string;
  bytes: number;
}

const COLUMNS: Column<NameMap>[] = [
  { id: 'service', title: 'Service', order: ({ service }) => service,
    cell: ({ service }) => <span class="long-name">{service}</span> },
  { id: 'version', title: 'Version', order: ({ version }) => version, cell: ({ version }) => version },
  { id: 'name', title: 'Of', order: ({ name, kind }) => name || kind,
    cell: ({ name, kind }) => <span class="long-name">{kind === 'jvm' ? 'classes and methods' : name}</span> },
  { id: 'bytes', title: 'Size', number: true, minor: true, order: ({ bytes }) => bytes,
    cell: ({ bytes }) => formatValue(bytes, 'bytes') },
];

export function Maps({ asked }: { asked: number }) {
  const [sort, setSort] = useState('service');
  const maps = useLoad(`maps ${asked}`, (signal) =>
    get<{ maps: NameMap[]; bytes: number }>('maps', {}, signal));
  if (!maps.value || maps.value.maps.length === 0)
    return null;
  return (
    <>
      <div class="page-head"><h2>Source maps and mapping files</h2>
        <span class="quiet">{formatValue(maps.value.bytes, 'bytes')}</span></div>
      <List label="Source maps and mapping files" columns={COLUMNS} rows={sorted(maps.value.maps, COLUMNS, sort)}
        keyOf={({ id }) => id} sort={sort} onSort={setSort} />
    </>
  );
}
