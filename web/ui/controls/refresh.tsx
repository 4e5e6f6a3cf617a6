// SPDX-License-Identifier: Apache-2.0
// How old a view is, and how often it is asked for again.

import { useEffect, useState } from 'preact/hooks';
import { INTERVALS } from '../refresh';
import { formatAge } from '../time';
import { Icon } from '../parts/icon';

function Updated({ answered }: { answered: number }) {
  const [, render] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => render((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  if (answered === 0) return null;
  return <span class="quiet updated">updated {formatAge((Date.now() - answered) / 1000)}</span>;
}

export interface RefreshProps {
  interval: string; // one of INTERVALS
  answered: number; // when the last answer came, in milliseconds; 0: none yet
  fixed?: boolean; // the range ends at a fixed time: nothing new can come
  onInterval: (id: string) => void;
  onRefresh: () => void;
}

export function Refresh({ interval, answered, fixed = false, onInterval, onRefresh }: RefreshProps) {
  return (
    <div class="group refresh" role="group" aria-label="Refresh">
      <Updated answered={answered} />
      <button type="button" class="button button-icon" aria-label="Refresh" title="Refresh"
        onClick={onRefresh}><Icon name="refresh" /></button>
      <select class="button whole" aria-label="Refresh automatically" disabled={fixed}
        title={fixed ? 'This range has a fixed end' : 'Refresh automatically'} value={fixed ? 'off' : interval}
        onChange={(event) => onInterval(event.currentTarget.value)}>
        {INTERVALS.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
      </select>
    </div>
  );
}
