// SPDX-License-Identifier: Apache-2.0
// Who: a small chart for each value of a label, the largest or the most changed first.

import { useMemo } from 'preact/hooks';
import { shownName } from '../../flame/data/names';
import { formatPercent, grouped } from '../../flame/data/units';
import { ApiError, get, type TimeSeries } from '../api';
import { seriesItems } from '../chart-menus';
import { useLoad } from '../load';
import { withLabel, writeQuery, type Selection } from '../selection';
import { meanOver, spread, type ChartPoint } from '../data/stack';
import { before, stepOf, type Bounds } from '../time';
import { formatRate, meaningOf, rates } from '../data/values';
import { ShortName } from '../parts/name';
import { Icon } from '../parts/icon';
import { usePointMenu } from './point-menu';
import { Sparkline } from './sparkline';
import { Failure, Progress } from '../parts/status';
import { versionName } from '../data/versions';

const CELLS_MAX = 60;
const POINTS = 60;

interface Cell {
  value: string;
  points: ChartPoint[];
  mean: number;
  earlier: number | null; // null: there is nothing to compare with
}

const SORTS: readonly (readonly [id: string, title: string])[] = [['', 'Value'], ['change', 'Change']];

const changeOf = ({ mean, earlier }: Cell) => Math.abs(mean - (earlier ?? 0));

function cellsOf(now: TimeSeries, earlier: TimeSeries | null, label: string): Cell[] {
  const meaning = meaningOf(now.type);
  const known = new Map((earlier?.series ?? []).map(({ labels, points }) =>
    [labels[label] ?? '', meanOver(rates(meaning, points, earlier!.step_seconds))]));
  const out = now.series.filter(({ rest }) => rest === undefined).map(({ labels, points }): Cell => {
    const values = rates(meaning, points, now.step_seconds);
    const value = labels[label] ?? '';
    return { value, points: spread(values, now.step_seconds), mean: meanOver(values),
      earlier: earlier ? known.get(value) ?? 0 : null };
  });
  const there = new Set(out.map(({ value }) => value));
  for (const [value, mean] of known) if (!there.has(value)) out.push({ value, points: [], mean: 0, earlier: mean });
  return out;
}

export interface LabelGridProps {
  selection: Selection;
  bounds: Bounds;
  labels: string[]; // to choose from
  label: string;
  sort: string;
  onLabel: (label: string) => void;
  onSort: (sort: string) => void;
  link: (selection: Selection) => string;
  select: (selection: Selection) => void;
}

export function LabelGrid(props: LabelGridProps) {
  const { selection, bounds, labels, label, sort, onLabel, onSort, link, select } = props;
  const query = writeQuery(selection);
  const openMenu = usePointMenu();
  const loaded = useLoad(`${query} ${bounds.from} ${bounds.to} ${label}`, async (signal) => {
    const ask = (range: Bounds) => get<TimeSeries>('timeseries', { query, from: String(range.from),
      to: String(range.to), step: String(stepOf(range, POINTS)), group_by: [label] }, signal);
    const none = (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    };
    return Promise.all([ask(bounds), ask(before(bounds)).catch(none)]);
  });
  const cells = useMemo(() => loaded.value ? cellsOf(...loaded.value, label) : [], [loaded.value]);
  const meaning = meaningOf(loaded.value?.[0].type ?? '');
  const whole = cells.reduce((sum, { mean }) => sum + mean, 0);
  const ordered = [...cells].sort((a, b) => sort === 'change' ? changeOf(b) - changeOf(a) : b.mean - a.mean);
  const compared = cells.some(({ earlier }) => earlier !== null && earlier > 0);
  return (
    <section class="by-label" aria-label={`By ${label}`}>
      <div class="by-label-head">
        <div class="group" role="group" aria-label="Label">
          {labels.map((name) => <button key={name} type="button" class="button" aria-pressed={name === label}
            onClick={() => onLabel(name)}>{name}</button>)}
        </div>
        <span class="inline">sorted by <span class="group" role="group" aria-label="Sorted by">
          {SORTS.map(([id, title]) => <button key={id} type="button" class="button" aria-pressed={id === sort}
            onClick={() => onSort(id)}>{title}</button>)}
        </span></span>
        <span class="quiet">{grouped(cells.length)} {cells.length === 1 ? 'value' : 'values'}
          {cells.length > CELLS_MAX ? `, the first ${CELLS_MAX} shown` : ''}
          {compared ? '; change since the previous period' : '; no previous period to compare with'}</span>
      </div>
      <Progress loaded={loaded} />
      <Failure loaded={loaded} />
      <ul class={loaded.stale ? 'cells stale' : 'cells'} data-hold>
        {ordered.slice(0, CELLS_MAX).map((cell) => {
          const name = cell.value === '' ? `(no ${label})`
            : shownName(label === 'version' ? versionName(cell.value) : cell.value);
          const only = withLabel(selection, label, cell.value);
          const by = cell.mean - (cell.earlier ?? 0);
          return (
            <li key={cell.value} class="cell">
              <div class="cell-head">
                {cell.value === '' ? <span class="quiet cell-name">{name}</span>
                  : <a class="cell-name" href={link(only)}><ShortName name={name} /></a>}
                <button type="button" class="chip-close" aria-haspopup="menu" aria-label={`More about ${name}`}
                  onClick={(event) => {
                    const { left, bottom } = event.currentTarget.getBoundingClientRect();
                    openMenu(name, seriesItems(selection, label, cell.value, bounds, select), left, bottom + 4);
                  }}><Icon name="more" /></button>
              </div>
              <div class="cell-values">
                <b>{formatRate(meaning, cell.mean)}</b>
                <span class="quiet">{whole > 0 ? formatPercent(cell.mean / whole) : ''}</span>
                {compared && by !== 0 && <span class={by > 0 ? 'grew' : 'shrank'}>
                  {cell.earlier === 0 ? 'new' : `${by > 0 ? '+' : '−'}${formatPercent(Math.abs(by) / cell.earlier!)}`}</span>}
              </div>
              <Sparkline points={cell.points} bounds={bounds} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}
