// SPDX-License-Identifier: Apache-2.0
// The controls that make up a selection: service, type, labels and time.

import { useState } from 'preact/hooks';
import { get, type ProfileType } from '../api';
import { useLoad } from '../load';
import { labelOf, SHORT_TYPES, withLabel, type Selection } from '../selection';
import { useSettings } from '../settings';
import { formatRange, type Bounds, type Range } from '../time';
import type { ComponentChildren } from 'preact';
import { Fold } from './fold';
import { LabelFilter } from './labels';
import { RangePicker } from './range';
import { Suggest } from './suggest';

function typeName(type: ProfileType): string {
  return `${type.name} ${type.sample_type} (${type.sample_unit})`;
}

function TypePicker(props: { selection: Selection; bounds: Bounds; onChange: (type: string) => void }) {
  const { selection, bounds, onChange } = props;
  const types = useLoad(`${bounds.from} ${bounds.to}`, (signal) =>
    get<ProfileType[]>('types', { from: String(bounds.from), to: String(bounds.to) }, signal));
  const known = SHORT_TYPES.some(([id]) => id === selection.type)
    || types.value?.some(({ id }) => id === selection.type);
  return (
    <select class="button" aria-label="Profile type" value={selection.type}
      onChange={(event) => onChange(event.currentTarget.value)}>
      {!known && <option value={selection.type}>{selection.type || 'any type'}</option>}
      <optgroup label="Usual">
        {SHORT_TYPES.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
      </optgroup>
      {types.value && types.value.length > 0 && (
        <optgroup label="As stored">
          {types.value.map((type) => <option key={type.id} value={type.id}>{typeName(type)}</option>)}
        </optgroup>
      )}
    </select>
  );
}

export interface SelectionBarProps {
  title?: string;
  selection: Selection;
  range: Range;
  bounds: Bounds;
  onChange: (selection: Selection, range: Range) => void;
  timeless?: boolean; // the time is chosen elsewhere
  children?: ComponentChildren; // more controls, before the time
}

export function SelectionBar({ title, selection, range, bounds, onChange, timeless, children }: SelectionBarProps) {
  const { utc } = useSettings();
  const [wanted, setWanted] = useState(false);
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const services = useLoad(wanted ? `${times.from} ${times.to}` : null, (signal) =>
    get<string[]>('label/service_name/values', times, signal));
  const select = (next: Selection) => onChange(next, range);
  return (
    <Fold class="page-head" label={title ?? 'Selection'} summary={[title ?? '',
      labelOf(selection, 'service_name') || 'All services',
      SHORT_TYPES.find(([id]) => id === selection.type)?.[1] ?? selection.type,
      timeless ? '' : formatRange(range, utc)].filter((part) => part !== '').join(' · ')}>
      {title && <span class="bar-word">{title}</span>}
      <Suggest label="Service" placeholder="All services" value={labelOf(selection, 'service_name')}
        options={services.value ?? []} onOpen={() => setWanted(true)}
        onChoose={(value) => select(withLabel(selection, 'service_name', value))} />
      <TypePicker selection={selection} bounds={bounds}
        onChange={(type) => select({ ...selection, type })} />
      <LabelFilter selection={selection} bounds={bounds} onChange={select} />
      <span class="space" />
      {children}
      {!timeless && <RangePicker range={range} onChange={(next) => onChange(selection, next)} />}
    </Fold>
  );
}
