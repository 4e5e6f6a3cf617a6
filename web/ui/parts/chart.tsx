// SPDX-License-Identifier: Apache-2.0
// A stacked time series: what was used when, by label. Dragging over it chooses a time range.

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { titleOf, type Mark } from '../marks';
import { useSettings } from '../settings';
import { evenDigits, largest, meanOf, peakOf, stack, type ChartSeries } from '../stack';
import { formatBounds, formatTick, formatTime, type Bounds } from '../time';

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
  onSelect?: (bounds: Bounds) => void;
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

// A dashed line where something happened.
function drawMarks(plot: uPlot, marks: readonly Mark[] = [], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = Math.max(1, Math.round(uPlot.pxRatio));
  ctx.setLineDash([4 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  ctx.beginPath();
  for (const { time } of marks) {
    const x = plot.valToPos(time, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
  }
  ctx.stroke();
  ctx.restore();
}

export function Chart(props: ChartProps) {
  const { label, title, children, series, bounds, step, format, height = 128, onSelect, onOut, variation, marks } = props;
  const highest = useMemo(() => Math.max(0, ...(variation ?? []).map(([, , high]) => high)), [variation]);
  const settings = useSettings();
  const { dark, safe } = settings.theme.scheme;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const shown = useMemo(() => largest(series), [series]);
  const stacked = useMemo(() => stack(shown, step), [shown, step]);
  const select = useRef(onSelect);
  select.current = onSelect;
  const colours = seriesColours(safe);

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const style = getComputedStyle(element);
    const quiet = style.getPropertyValue('--quiet').trim();
    const line = style.getPropertyValue('--line').trim();
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false },
      font: '12px system-ui, sans-serif' };
    const chart = new uPlot({
      width: element.clientWidth, height,
      padding: [8, 8, 0, 0],
      tzDate: (seconds) => settings.utc
        ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000),
      legend: { show: false },
      cursor: { drag: { x: onSelect !== undefined, y: false, setScale: false },
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
        fill: colours[i % colours.length] + (dark ? '88' : '66'),
        points: { show: false },
        paths: uPlot.paths.stepped?.({ align: 1 }),
      }))],
      // What is stacked on top is drawn over what is below: each fills down to the next.
      bands: shown.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })),
      hooks: {
        draw: [(u) => drawVariation(u, variation, step, quiet),
          (u) => drawMarks(u, marks, style.getPropertyValue('--text').trim())],
        setCursor: [({ cursor: { idx } }) =>
          setHovered(idx == null ? null : Math.min(idx, stacked.data[0].length - 2))],
        setSelect: [(u) => {
          if (u.select.width > 3)
            select.current?.({ from: u.posToVal(u.select.left, 'x'),
              to: u.posToVal(u.select.left + u.select.width, 'x') });
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, stacked.data, element);
    plot.current = chart;
    const observer = new ResizeObserver(() =>
      chart.setSize({ width: Math.max(100, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [stacked, dark, safe, settings.utc, bounds.from, bounds.to, step, height, variation, marks]);
  const hoveredTime = hovered === null ? undefined : stacked.data[0][hovered];
  const near = hoveredTime === undefined ? []
    : (marks ?? []).filter(({ time }) => time >= hoveredTime && time < hoveredTime + step);
  const within = variation?.find(([time]) => hoveredTime !== undefined && Math.abs(time - hoveredTime) < step / 2);

  return (
    <figure class="chart" aria-label={label}>
      <figcaption class="chart-head">
        <span class="chart-title">{title}</span>{children}
        <span class="chart-time quiet">
          {hovered === null || stacked.data[0][hovered] === undefined
            ? '' : formatTime(stacked.data[0][hovered], settings.utc)}
        </span>
        {near.map((mark) => <span key={`${mark.time} ${titleOf(mark)}`} class="chart-name">{titleOf(mark)}</span>)}
        {within && <span class="chart-name">lowest <b>{format(within[1])}</b> highest <b>{format(within[2])}</b></span>}
        {(shown.length > 1 || hovered !== null) && shown.map(({ name }, i) => (
          <span key={name} class="chart-name">
            <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={colours[i % colours.length]} />
            </svg>
            {name}
            {hovered !== null && stacked.own[i]?.[hovered] != null
              && <b>{format(stacked.own[i][hovered] as number)}</b>}
          </span>
        ))}
      </figcaption>
      <table class="hidden">
        <caption>{label}, {formatBounds(bounds, settings.utc)}</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">Mean</th><th scope="col">Peak</th></tr></thead>
        <tbody>
          {shown.map(({ name, points }) => (
            <tr key={name}><th scope="row">{name}</th>
              <td>{format(meanOf(points))}</td><td>{format(peakOf(points))}</td></tr>
          ))}
          {(marks ?? []).map((mark) => (
            <tr key={`${mark.time} ${titleOf(mark)}`}><th scope="row">{titleOf(mark)}</th>
              <td colSpan={2}>{formatTime(mark.time, settings.utc)}</td></tr>
          ))}
          {variation && <tr><th scope="row">all, within a step</th><td /><td>{format(highest)}</td></tr>}
        </tbody>
      </table>
      <div class="chart-plot" ref={box} style={{ height: `${height}px` }} onDblClick={onOut} />
    </figure>
  );
}
