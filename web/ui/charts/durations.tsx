// SPDX-License-Identifier: Apache-2.0
// How many requests took how long, on a logarithmic scale: a part that is dragged over is a band.

import { useRef, useState } from 'preact/hooks';
import { formatValue, grouped } from '../../flame/data/units';
import type { Step } from '../data/requests';

const WIDTH = 1000;
const HEIGHT = 100;
const TICKS = 8;
const duration = (ns: number) => formatValue(ns, 'nanoseconds');

export function Durations({ steps, chosen, onBand }: {
  steps: Step[]; chosen: { from: number; to: number } | null; onBand: (from: number, to: number) => void;
}) {
  const plot = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<readonly [number, number] | null>(null); // in nanoseconds
  if (steps.length === 0) return null;
  const least = Math.log(Math.max(1, steps[0].from));
  const span = Math.max(0.1, Math.log(steps[steps.length - 1].to) - least);
  const most = steps.reduce((max, { count }) => Math.max(max, count), 1);
  const x = (ns: number) => Math.min(WIDTH, Math.max(0, (WIDTH * (Math.log(Math.max(1, ns)) - least)) / span));
  const at = (event: PointerEvent): number => {
    const { left, width } = plot.current!.getBoundingClientRect();
    return Math.exp(least + span * Math.min(1, Math.max(0, (event.clientX - left) / width)));
  };
  // Few requests beside many are seen, too.
  const height = (count: number) => (count === 0 ? 0 : HEIGHT * Math.sqrt(count / most));
  const marked = drag ? { from: Math.min(...drag), to: Math.max(...drag) } : chosen;
  return (
    <figure class="durations" aria-label="Requests by duration">
      <svg ref={plot} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true"
        onPointerDown={(event) => {
          plot.current?.setPointerCapture(event.pointerId);
          setDrag([at(event), at(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], at(event)])}
        onPointerUp={() => {
          if (marked && drag && x(marked.to) - x(marked.from) > 3) onBand(marked.from, marked.to);
          setDrag(null);
        }}
        onPointerCancel={() => setDrag(null)}>
        {steps.map(({ from, to, count, errors }) => <g key={from}>
          <rect x={x(from)} width={Math.max(1, x(to) - x(from))} y={HEIGHT - height(count)} height={height(count)}>
            <title>{duration(from)} to {duration(to)}: {grouped(count)} requests</title></rect>
          {errors > 0 && <rect class="failed" x={x(from)} width={Math.max(1, x(to) - x(from))}
            y={HEIGHT - height(errors)} height={height(errors)} />}
        </g>)}
        {marked && <rect class="band" x={x(marked.from)} width={Math.max(1, x(marked.to) - x(marked.from))}
          y="0" height={HEIGHT} />}
      </svg>
      <div class="durations-axis" aria-hidden="true">
        {Array.from({ length: TICKS }, (_, i) => <span key={i}>
          {duration(Number(Math.exp(least + (span * i) / (TICKS - 1)).toPrecision(2)))}</span>)}
      </div>
      <table class="hidden">
        <caption>Requests by duration</caption>
        <thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Requests</th><th scope="col">Errors</th></tr></thead>
        <tbody>{steps.filter(({ count }) => count > 0).map((step) => <tr key={step.from}>
          <th scope="row">{duration(step.from)}</th><td>{duration(step.to)}</td><td>{step.count}</td><td>{step.errors}</td></tr>)}</tbody>
      </table>
    </figure>
  );
}
