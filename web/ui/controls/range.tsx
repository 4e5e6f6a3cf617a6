// SPDX-License-Identifier: Apache-2.0
// Choosing a time range: the usual ones by a click, others by typing.

import { useEffect, useRef, useState } from 'preact/hooks';
import { useSettings } from '../settings';
import { formatRange, parseTime, QUICK_RANGES, rangeProblem, type Range } from '../time';
import { Icon } from '../parts/icon';

export function RangePicker(props: { range: Range; onChange: (range: Range) => void }) {
  const { utc } = useSettings();
  const { range, onChange } = props;
  const details = useRef<HTMLDetailsElement>(null);
  const [from, setFrom] = useState(range.from);
  const [to, setTo] = useState(range.to);
  useEffect(() => {
    setFrom(range.from);
    setTo(range.to);
  }, [range.from, range.to]);
  const problem = rangeProblem({ from, to });

  function choose(next: Range) {
    if (details.current) details.current.open = false;
    onChange(next);
  }

  return (
    <details class="picker" ref={details}>
      <summary class="button"><Icon name="clock" /> {formatRange(range, utc)} <Icon name="down" /></summary>
      <div class="picker-panel">
        <div class="picker-quick">
          {QUICK_RANGES.map(([start_, title]) => (
            <button type="button" key={start_} class="link"
              aria-pressed={range.from === start_ && range.to === 'now'}
              onClick={() => choose({ from: start_, to: 'now' })}>{title}</button>
          ))}
        </div>
        <form class="picker-form" onSubmit={(event) => {
          event.preventDefault();
          if (problem === '') choose({ from: absolute(from), to: absolute(to) });
        }}>
          <label>From <input class="field" value={from}
            onInput={(event) => setFrom(event.currentTarget.value)} /></label>
          <label>To <input class="field" value={to}
            onInput={(event) => setTo(event.currentTarget.value)} /></label>
          <p class="problem" role="alert">{problem}</p>
          <button class="button primary" type="submit" disabled={problem !== ''}>Show</button>
        </form>
      </div>
    </details>
  );
}

// Addresses hold what every server reads the same way: relative times, or unix seconds.
function absolute(text: string): string {
  const trimmed = text.trim();
  if (trimmed.startsWith('now')) return trimmed;
  const seconds = parseTime(trimmed, 0);
  return seconds === null ? trimmed : String(Math.round(seconds));
}
