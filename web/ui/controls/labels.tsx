// SPDX-License-Identifier: Apache-2.0
// The labels of a selection as chips, and adding one: a name, an operator and a value, each with
// completion.

import { useState } from 'preact/hooks';
import { get } from '../api';
import { useLoad } from '../load';
import { withLabel, type Operator, type Selection } from '../selection';
import type { Bounds } from '../time';
import { Icon } from '../parts/icon';
import { Suggest } from './suggest';

const OPERATORS: readonly Operator[] = ['=', '!=', '=~', '!~'];

interface LabelFilterProps {
  selection: Selection;
  bounds: Bounds;
  onChange: (selection: Selection) => void;
}

function Adding({ bounds, onAdd }: { bounds: Bounds; onAdd: (name: string, operator: Operator, value: string) => void }) {
  const [name, setName] = useState('');
  const [operator, setOperator] = useState<Operator>('=');
  const times = { from: String(bounds.from), to: String(bounds.to) };
  const names = useLoad(times.from, (signal) => get<string[]>('labels', times, signal));
  const values = useLoad(name === '' ? null : name, (signal) =>
    get<string[]>(`label/${encodeURIComponent(name)}/values`, times, signal));
  return (
    <span class="chip adding">
      <Suggest label="Label" value={name} options={(names.value ?? []).filter((n) => n !== 'service_name')}
        onChoose={setName} />
      <select class="button" aria-label="Comparison operator" value={operator}
        onChange={(event) => setOperator(event.currentTarget.value as Operator)}>
        {OPERATORS.map((one) => <option key={one}>{one}</option>)}
      </select>
      <Suggest label="Value" value="" options={values.value ?? []}
        onChoose={(value) => name !== '' && value !== '' && onAdd(name, operator, value)} />
    </span>
  );
}

export function LabelFilter({ selection, bounds, onChange }: LabelFilterProps) {
  const [adding, setAdding] = useState(false);
  const chips = selection.matchers.filter((m) => m.name !== 'service_name' || m.operator !== '=');
  return (
    <span class="chips">
      {chips.map((matcher) => (
        <span key={`${matcher.name}${matcher.operator}${matcher.value}`} class="chip">
          {matcher.name} {matcher.operator} {matcher.value === '' ? '""' : matcher.value}
          <button type="button" class="chip-close" aria-label={`Remove ${matcher.name}`}
            onClick={() => onChange({ ...selection, matchers: selection.matchers.filter((one) => one !== matcher) })}><Icon name="close" /></button>
        </span>
      ))}
      {adding
        ? <Adding bounds={bounds} onAdd={(name, operator, value) => {
          setAdding(false);
          onChange(withLabel(selection, name, value, operator));
        }} />
        : <button type="button" class="button" onClick={() => setAdding(true)}>
          <Icon name="plus" /> Label
        </button>}
    </span>
  );
}
