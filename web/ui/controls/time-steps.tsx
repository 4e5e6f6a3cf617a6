// SPDX-License-Identifier: Apache-2.0
// Earlier, later, and out again: the ways around a time range that a drag on the chart led into.

import { useEffect, useRef } from 'preact/hooks';
import { moved, wider, type Bounds } from '../time';
import { Icon } from '../parts/icon';

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('input, select, textarea');

export function TimeSteps({ bounds, onChange }: { bounds: Bounds; onChange: (bounds: Bounds) => void }) {
  const steps: Record<string, () => void> = {
    '[': () => onChange(moved(bounds, -1)),
    ']': () => onChange(moved(bounds, 1)),
    '-': () => onChange(wider(bounds)),
  };
  const latest = useRef(steps);
  latest.current = steps;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing(event.target) || !latest.current[event.key]) return;
      event.preventDefault();
      latest.current[event.key]();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
  return (
    <div class="group" role="group" aria-label="Time">
      <button type="button" class="button button-icon" aria-label="Earlier" title="Earlier ( [ )"
        onClick={steps['[']}><Icon name="left" /></button>
      <button type="button" class="button button-icon" aria-label="A wider range"
        title="A wider range ( - )" onClick={steps['-']}><Icon name="zoomOut" /></button>
      <button type="button" class="button button-icon" aria-label="Later" title="Later ( ] )"
        onClick={steps[']']}><Icon name="right" /></button>
    </div>
  );
}
