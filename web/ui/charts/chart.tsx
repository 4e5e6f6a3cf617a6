// SPDX-License-Identifier: Apache-2.0
// A stacked time series: what was used when, by label. It is a control, too: a drag over it and a click
// on a name of the legend offer what can be done with that range or that series.

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { MenuItem } from '../../flame/controls/menu';
import { titleOf, type Mark } from '../data/marks';
import { useSettings } from '../settings';
import { evenDigits, largest, meanOf, OTHERS, peakOf, stack, type ChartSeries } from '../data/stack';
import { formatBounds, formatTick, formatTime, type Bounds } from '../time';
import { ShortName } from '../parts/name';
import { usePointMenu, type OpenMenu } from './point-menu';
import { Regions, type Region } from './regions';

export interface ChartProps {
  label: string;
  title?: string; // shown above it
  series: ChartSeries[];
  bounds: Bounds;
  step: number;
  format: (value: number) => string;
  height?: number;
  // How all together varied within a step, in the chart's unit.
  variation?: readonly (readonly [time: number, low: number, high: number])[];
  marks?: readonly Mark[]; // vertical lines where something happened
  // What a range that was dragged offers, and a series that was clicked; none for "others".
  rangeItems?: (bounds: Bounds) => MenuItem[];
  seriesItems?: (name: string) => MenuItem[];
  regions?: readonly Region[];
  apart?: boolean; // series of different things, drawn over each other instead of on top
  onOut?: () => void; // a double click: a wider range
  children?: ComponentChildren; // controls beside the title
}

// Eight colours that can be told apart on both themes; what is beyond is "others".
const USUAL = ['#4c78d0', '#e0863a', '#3f9d6a', '#b65fb0', '#c9a227', '#5ab1bf', '#d1605e', '#8b7bd8'];
const SAFE = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#56b4e9', '#d55e00', '#7f7f7f'];

export function seriesColours(safe: boolean): readonly string[] {
  return safe ? SAFE : USUAL;
}

// Beside an axis, in its font.
const CHARACTER_PX = 8;
const AXIS_GAP_PX = 14;

// A label stands in the middle under its time: at the right end it would be cut off.
function unlessCut(plot: uPlot, time: number, text: string): string {
  const right = plot.bbox.left / uPlot.pxRatio + plot.valToPos(time, 'x') + CHARACTER_PX * text.length / 2;
  return right <= plot.width ? text : '';
}

// A line in each step from the lowest to the highest: a spike that is shorter than a step is seen.
function drawVariation(plot: uPlot, variation: ChartProps['variation'] = [], step: number, colour: string): void {
  const { ctx, bbox } = plot;
  const width = Math.max(1, Math.round(uPlot.pxRatio));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour;
  for (const [time, low, high] of variation) {
    const x = plot.valToPos(time + step / 2, 'x', true);
    const top = plot.valToPos(high, 'y', true);
    ctx.fillRect(x - width / 2, top, width, Math.max(width, plot.valToPos(low, 'y', true) - top));
  }
  ctx.restore();
}

// A dashed line where something happened, and a band over the range of a note.
function drawMarks(plot: uPlot, marks: readonly Mark[] = [], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = Math.max(1, Math.round(uPlot.pxRatio));
  ctx.setLineDash([4 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  ctx.beginPath();
  ctx.fillStyle = `${colour}22`;
  for (const { time, until } of marks) {
    if (until === undefined) continue;
    const [from, to] = [time, until].map((at) =>
      Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(at, 'x', true))));
    ctx.fillRect(from, bbox.top, Math.max(0, to - from), bbox.height);
  }
  for (const { time } of marks) {
    const x = plot.valToPos(time, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
  }
  ctx.stroke();
  ctx.restore();
}

const NO_REGIONS: readonly Region[] = [];

// A series' name and its mean, or its value under the pointer: always there, so that nothing moves.
function LegendEntry(props: {
  name: string; colour: string; value: string; items?: (name: string) => MenuItem[]; openMenu: OpenMenu;
}) {
  const { name, colour, value, items, openMenu } = props;
  const inside = <>
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      <rect width="10" height="10" rx="2" fill={colour} />
    </svg>
    <span class="legend-name"><ShortName name={name} /></span> <b>{value}</b></>;
  if (!items) return <span class="chart-name">{inside}</span>;
  return (
    <button type="button" class="chart-name" aria-haspopup="menu" onClick={(event) => {
      const { left, bottom } = event.currentTarget.getBoundingClientRect();
      openMenu(name, items(name), left, bottom + 4);
    }}>{inside}</button>
  );
}

export function Chart(props: ChartProps) {
  const { label, title, children, series, bounds, step, format, height = 128, rangeItems, seriesItems,
    regions = NO_REGIONS, apart = false, onOut, variation, marks } = props;
  const highest = useMemo(() => Math.max(0, ...(variation ?? []).map(([, , high]) => high)), [variation]);
  const settings = useSettings();
  const { dark, safe } = settings.theme.scheme;
  const box = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const shown = useMemo(() => apart ? series : largest(series), [series, apart]);
  const stacked = useMemo(() => stack(shown, step, apart), [shown, step, apart]);
  const openMenu = usePointMenu();
  const offer = useRef(rangeItems);
  offer.current = rangeItems;
  const [area, setArea] = useState({ left: 0, width: 0, top: 0, height: 0 }); // where the plot is
  const colours = seriesColours(safe);

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const style = getComputedStyle(element);
    const quiet = style.getPropertyValue('--quiet').trim();
    const line = style.getPropertyValue('--line').trim();
    const measure = ({ over }: uPlot) => setArea({
      left: over.offsetLeft, width: over.offsetWidth, top: over.offsetTop, height: over.offsetHeight });
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false },
      font: '12px system-ui, sans-serif' };
    const chart = new uPlot({
      width: element.clientWidth, height,
      padding: [8, 8, 0, 0],
      tzDate: (seconds) => settings.utc
        ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000),
      legend: { show: false },
      cursor: { drag: { x: rangeItems !== undefined, y: false, setScale: false },
        points: { show: false } },
      scales: {
        x: { time: true, range: () => [bounds.from, bounds.to] },
        y: { range: (_, __, max) => [0, Math.max(max, highest) > 0 ? Math.max(max, highest) * 1.05 : 1] },
      },
      axes: [
        { ...axis, size: 30, values: (u, splits, _, __, apart) => splits.map((time) =>
          unlessCut(u, time, formatTick(time, apart, settings.utc))) },
        { ...axis, space: 20, values: (_, splits) => evenDigits(splits, format),
          size: (_, values) => AXIS_GAP_PX + CHARACTER_PX * Math.max(4, ...(values ?? []).map(({ length }) => length)) },
      ],
      series: [{}, ...shown.map((_, i) => ({
        stroke: colours[i % colours.length], width: 1,
        fill: apart ? undefined : colours[i % colours.length] + (dark ? '88' : '66'),
        points: { show: false },
        paths: uPlot.paths.stepped?.({ align: 1 }),
      }))],
      // What is stacked on top is drawn over what is below: each fills down to the next.
      bands: apart ? [] : shown.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })),
      hooks: {
        draw: [(u) => drawVariation(u, variation, step, quiet),
          (u) => drawMarks(u, marks, style.getPropertyValue('--text').trim())],
        setCursor: [({ cursor: { idx } }) =>
          setHovered(idx == null ? null : Math.min(idx, stacked.data[0].length - 2))],
        ready: [(u) => measure(u)],
        setSize: [(u) => measure(u)],
        setSelect: [(u) => {
          const none = () => u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          const { left, width } = u.select;
          if (width <= 3) {
            none();
            return;
          }
          const dragged = { from: Math.floor(u.posToVal(left, 'x')), to: Math.ceil(u.posToVal(left + width, 'x')) };
          const over = u.over.getBoundingClientRect();
          // The range stays marked as long as the menu asks what to do with it.
          openMenu(formatBounds(dragged, settings.utc), offer.current?.(dragged) ?? [],
            over.left + left + width, over.top + (u.cursor.top ?? 0), none);
        }],
      },
    }, stacked.data, element);
    const observer = new ResizeObserver(() =>
      chart.setSize({ width: Math.max(100, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [stacked, dark, safe, settings.utc, bounds.from, bounds.to, step, height, variation, marks, apart]);
  const hoveredTime = hovered === null ? undefined : stacked.data[0][hovered];
  const near = hoveredTime === undefined ? []
    : (marks ?? []).filter(({ time, until = time }) => until >= hoveredTime && time < hoveredTime + step);
  const within = variation?.find(([time]) => hoveredTime !== undefined && Math.abs(time - hoveredTime) < step / 2);

  return (
    <figure class="chart" aria-label={label}>
      <figcaption class="chart-head">
        <span class="chart-title">{title}</span>{children}
        {shown.length > 1 && <span class="chart-legend">{shown.map(({ name, points, mean }, i) => (
          <LegendEntry key={name} name={name} colour={colours[i % colours.length]}
            value={format(hovered !== null && stacked.own[i]?.[hovered] != null
              ? stacked.own[i][hovered] as number : mean ?? meanOf(points))}
            items={name === OTHERS ? undefined : seriesItems} openMenu={openMenu} />
        ))}</span>}
      </figcaption>
      <table class="hidden">
        <caption>{label}, {formatBounds(bounds, settings.utc)}</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">Mean</th><th scope="col">Peak</th></tr></thead>
        <tbody>
          {shown.map(({ name, points, mean }) => (
            <tr key={name}><th scope="row">{name}</th>
              <td>{format(mean ?? meanOf(points))}</td><td>{format(peakOf(points))}</td></tr>
          ))}
          {(marks ?? []).map((mark) => (
            <tr key={`${mark.time} ${titleOf(mark)}`}><th scope="row">{titleOf(mark)}</th>
              <td colSpan={2}>{formatTime(mark.time, settings.utc)}</td></tr>
          ))}
          {variation && <tr><th scope="row">all, within a step</th><td /><td>{format(highest)}</td></tr>}
        </tbody>
      </table>
      <div class="chart-plot" style={{ height: `${height}px` }} onDblClick={onOut}>
        <div ref={box} />
        <div class="chart-over" style={{ left: `${area.left}px`, width: `${area.width}px`,
          top: `${area.top}px`, height: `${area.height}px` }}>
          {area.width > 0 && <Regions regions={regions} chart={bounds} step={step} />}
          {hoveredTime !== undefined && <span class="chart-time">{[
            formatTime(hoveredTime, settings.utc),
            shown.length === 1 && stacked.own[0]?.[hovered!] != null ? format(stacked.own[0][hovered!] as number) : '',
            within ? `lowest ${format(within[1])}, highest ${format(within[2])}` : '',
            ...near.map(titleOf),
          ].filter((part) => part !== '').join(' · ')}</span>}
        </div>
      </div>
    </figure>
  );
}
