// SPDX-License-Identifier: Apache-2.0
// How good an answer is, in one line: what it rests on, and what is missing from it.

import { formatPercent, grouped } from '../../flame/units';
import type { Quality } from '../api';
import { formatBounds, formatDuration, type Bounds } from '../time';
import { useSettings } from '../settings';

function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

// Sentences on what a reader should know before believing the picture.
function doubts(quality: Quality, bounds: Bounds): string[] {
  const out: string[] = [];
  const span = bounds.to - bounds.from;
  if (quality.windows > 0 && quality.first - bounds.from > Math.max(120, span / 20))
    out.push(`nothing in the first ${formatDuration(quality.first - bounds.from)}`);
  if (typeof quality.unnamed_share === 'number' && quality.unnamed_share > 0.05)
    out.push(`${formatPercent(quality.unnamed_share)} in code without names`);
  if (quality.cut > 0 && quality.total > 0 && quality.cut / quality.total > 0.001)
    out.push(`${formatPercent(quality.cut / quality.total)} in parts too small to draw`);
  if (quality.dropped) out.push(`${plural(quality.dropped, 'sample')} lost on the way`);
  if (quality.damaged_blocks > 0 || quality.damaged_files > 0)
    out.push('some of the data is damaged and left out');
  return out;
}

interface QualityLineProps {
  quality: Quality;
  bounds: Bounds;
  title?: string;
}

export function QualityLine({ quality, bounds, title }: QualityLineProps) {
  const { utc } = useSettings();
  const facts = [
    formatBounds(bounds, utc),
    plural(quality.samples, 'sample'),
    plural(quality.windows, 'window'),
    typeof quality.hosts === 'number' ? plural(quality.hosts, 'host') : '',
    typeof quality.windows_covered === 'number'
      ? `${formatPercent(quality.windows_covered)} of the time covered` : '',
    typeof quality.unnamed_share === 'number' && quality.unnamed_share <= 0.05
      ? `${formatPercent(1 - quality.unnamed_share)} named` : '',
  ].filter((fact) => fact !== '');
  const all = [
    ...facts.map((text) => ({ text, doubt: false })),
    ...doubts(quality, bounds).map((text) => ({ text, doubt: true })),
  ];
  // A line breaks behind a fact, never within one.
  return (
    <p class="quality" aria-label="What this answer rests on">
      {title && <b>{title}: </b>}
      {all.map(({ text, doubt }, i) => (
        <>{i > 0 && ' '}<span class={doubt ? 'fact doubt' : 'fact'}>
          {text}{i < all.length - 1 && ' ·'}</span></>
      ))}
    </p>
  );
}
