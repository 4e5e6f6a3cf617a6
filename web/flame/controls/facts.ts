// SPDX-License-Identifier: Apache-2.0
// What there is to say about one frame, in words: shared by the tooltip, the status line and the
// screen reader's announcement.

import { functionName, type Finding, type Profile, type SampleType } from '../data/data';
import { shownName } from '../data/names';
import { NONE, type StateTotals } from '../data/states';
import { formatChange, formatGrowth, formatPercent, formatValue } from '../data/units';
import type { Hit } from '../view/graph';
import type { Graph } from '../data/tree';

export interface FactRow {
  label: string;
  cells: string[];
}

export interface Facts {
  name: string;
  inlined: boolean;
  // File and binary, where known.
  origin: string[];
  head: string[];
  rows: FactRow[];
}

function plainRows(graph: Graph, node: number, zoom: number, unit: string): FactRow[] {
  const { self, total } = graph.values;
  const zoomed = total[zoom];
  const row = (label: string, value: number): FactRow => ({
    label,
    cells: [
      formatValue(value, unit),
      formatPercent(value / graph.whole),
      ...(zoom !== 0 ? [formatPercent(value / zoomed)] : []),
    ],
  });
  return [row('Total', total[node]), row('Self', self[node])];
}

function diffRows(graph: Graph, node: number, unit: string): FactRow[] {
  const { self, total, baseSelf, baseTotal } = graph.values;
  const row = (label: string, base: number, value: number): FactRow => ({
    label,
    cells: [
      formatValue(base, unit),
      formatValue(value, unit),
      formatChange(value - base, unit),
      formatGrowth(base, value),
      formatPercent(value / graph.whole),
    ],
  });
  return [
    row('Total', baseTotal ? baseTotal[node] : 0, total[node]),
    row('Self', baseSelf ? baseSelf[node] : 0, self[node]),
  ];
}

// How much of it was in which state, the most first.
function stateRows(states: StateTotals, graph: Graph, node: number, unit: string): FactRow[] {
  if (states.main[node] === NONE) return [];
  return states.names
    .map((name, s) => ({ label: shownName(name), value: states.total[s][node] }))
    .filter(({ value }) => value > 0).sort((a, b) => b.value - a.value)
    .map(({ label, value }) => ({
      label, cells: [formatValue(value, unit), formatPercent(value / graph.whole)] }));
}

const VERDICTS = { grew: 'it grew', shrank: 'it shrank', noise: 'within the noise',
  undecided: 'undecided' } as const;

const CAUSES = { requests: ', because the number of requests changed',
  'cost per request': ' per request' } as const;

// What a measurement says of a function's change, as a sentence.
export function findingWords({ interval, verdict, cause, moreSeconds }: Finding, unit: string): string {
  const between = interval
    ? `Its total changed by ${formatChange(interval[0], unit)} to ${formatChange(interval[1], unit)}` : '';
  const settle = verdict === 'undecided' && moreSeconds > 0
    ? `; about ${formatValue(moreSeconds * 1e9, 'nanoseconds')} more on each side would settle it` : '';
  const word = verdict ? VERDICTS[verdict] + (cause ? CAUSES[cause] : settle) : '';
  const text = [between, word].filter((part) => part !== '').join(': ');
  return text === '' ? '' : `${text[0].toUpperCase()}${text.slice(1)}.`;
}

export function frameFacts(
  profile: Profile, type: SampleType, graph: Graph, hit: Hit, zoom: number,
  states: StateTotals | null = null,
): Facts {
  const func = graph.tree.func[hit.node];
  const name = functionName(profile, func);
  if (hit.rest > 0) {
    const plural = hit.rest === 1 ? 'callee' : 'callees';
    return {
      name: `${hit.rest} more ${plural} of ${name}`,
      inlined: false,
      origin: ['Too narrow to draw at this zoom. Click to zoom in.'],
      head: [],
      rows: [],
    };
  }
  const diff = profile.kind === 'diff';
  const finding = diff ? profile.findings[profile.types.indexOf(type)]?.get(func) : undefined;
  const head = diff ? ['before', 'after', 'change', '', 'of total']
    : zoom !== 0 ? ['', 'of total', 'of zoom'] : ['', 'of total'];
  return {
    name,
    inlined: graph.tree.inlined[hit.node] === 1,
    origin: func < 0 ? [] : [profile.files[func], profile.binaries[func]]
      .filter((s) => s !== '').map(shownName)
      .concat(finding ? findingWords(finding, type.unit) : []),
    head,
    rows: diff
      ? diffRows(graph, hit.node, type.unit)
      : [...plainRows(graph, hit.node, zoom, type.unit),
        ...(states ? stateRows(states, graph, hit.node, type.unit) : [])],
  };
}

// One line, for the status bar.
export function factsLine(facts: Facts): string {
  const rows = facts.rows.map(({ label, cells }) =>
    cells.length > 3
      ? `${label.toLowerCase()} ${cells[0]} → ${cells[1]} (${cells[3]})`
      : `${label.toLowerCase()} ${cells[0]}, ${cells[1]}`);
  return rows.join(' · ');
}
