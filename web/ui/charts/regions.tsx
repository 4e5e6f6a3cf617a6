// SPDX-License-Identifier: Apache-2.0
// Time ranges on a chart that can be dragged by their ends, and moved by their names: with the pointer
// or with the arrow keys.

import { useEffect, useState } from 'preact/hooks';
import { useSettings } from '../settings';
import { formatTime, moveEnd, type Bounds, type End } from '../time';
import { Icon } from '../parts/icon';

export interface Region {
  id: string;
  label: string;
  bounds: Bounds;
  onChange: (bounds: Bounds) => void;
  onClose?: () => void;
}

interface RegionProps {
  region: Region;
  chart: Bounds; // what the chart shows
  step: number;
}

const KEY_STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 };

function RegionView({ region, chart, step }: RegionProps) {
  const { utc } = useSettings();
  const [draft, setDraft] = useState<Bounds | null>(null); // while it is dragged
  const { label, bounds, onChange, onClose } = region;
  useEffect(() => setDraft(null), [bounds.from, bounds.to]);
  const { from, to } = draft ?? bounds;
  const span = chart.to - chart.from;
  const part = (time: number) => Math.min(1, Math.max(0, (time - chart.from) / span));

  function drag(end: End, event: PointerEvent) {
    if (event.button !== 0) return;
    event.preventDefault();
    const handle = event.currentTarget as HTMLElement;
    const width = handle.closest('.chart-over')!.clientWidth;
    const start = event.clientX;
    let now: Bounds | null = null;
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const move = ({ clientX }: PointerEvent) => {
      now = moveEnd(bounds, end, (clientX - start) / width * span, chart, step);
      setDraft(now);
    };
    const finish = ({ type }: Event) => {
      handle.removeEventListener('pointermove', move);
      for (const name of ['pointerup', 'pointercancel']) handle.removeEventListener(name, finish);
      if (type === 'pointerup' && now) onChange(now);
      else setDraft(null);
    };
    handle.addEventListener('pointermove', move);
    for (const name of ['pointerup', 'pointercancel']) handle.addEventListener(name, finish);
  }
  function press(end: End, event: KeyboardEvent) {
    const steps = KEY_STEPS[event.key];
    if (event.key === 'Escape' && onClose) onClose();
    else if (steps === undefined) return;
    else onChange(moveEnd(bounds, end, steps * step, chart, step));
    event.preventDefault();
    event.stopPropagation();
  }
  const slider = (end: End, words: string, time: number) => ({
    role: 'slider', tabIndex: 0, 'aria-label': `${label}: ${words}`, 'aria-valuemin': Math.round(chart.from),
    'aria-valuemax': Math.round(chart.to), 'aria-valuenow': Math.round(time),
    'aria-valuetext': formatTime(time, utc),
    onPointerDown: (event: PointerEvent) => drag(end, event),
    onKeyDown: (event: KeyboardEvent) => press(end, event),
  } as const);
  return (
    <div class="region" data-region={region.id}
      style={{ left: `${100 * part(from)}%`, width: `${100 * (part(to) - part(from))}%` }}>
      <span class="region-name">
        <span class="region-grip" {...slider('both', 'move', from)} title="Drag to move">{label}</span>
        {onClose && <button type="button" class="region-close" aria-label={`Close ${label}`} onClick={onClose}>
          <Icon name="close" /></button>}
      </span>
      <span class="region-end" {...slider('from', 'start', from)} />
      <span class="region-end" {...slider('to', 'end', to)} />
    </div>
  );
}

export function Regions({ regions, chart, step }: { regions: readonly Region[]; chart: Bounds; step: number }) {
  return <>{regions.filter(({ bounds }) => bounds.to > chart.from && bounds.from < chart.to).map((region) =>
    <RegionView key={region.id} region={region} chart={chart} step={step} />)}</>;
}
