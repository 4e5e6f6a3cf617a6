// SPDX-License-Identifier: Apache-2.0
// How good an answer is, in one line: what it rests on, and what is missing from it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { formatPercent, grouped } from '../../flame/data/units';
import type { Quality } from '../api';
import { formatBounds, formatDuration, type Bounds } from '../time';
import { useSettings } from '../settings';

function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

// Names that are still to come: what has no name now may have one in a minute.
export function pendingNames(quality: Quality): string[] {
  const { symbols_requested: requested = 0, symbols_uploading: uploading = 0, unnamed_share: share } = quality;
  const parts = [requested > 0 ? `${grouped(requested)} requested` : '', uploading > 0 ? `${grouped(uploading)} uploading` : '']
    .filter((part) => part !== '');
  return share === 0 || parts.length === 0 ? []
    : [`names pending: symbols of ${plural(requested + uploading, 'binary', 'binaries')}, ${parts.join(', ')}`];
}

// Sentences on what a reader should know before believing the picture.
function doubts(quality: Quality, bounds: Bounds): string[] {
  const out: string[] = [];
  const span = bounds.to - bounds.from;
  if (quality.windows > 0 && quality.first - bounds.from > Math.max(120, span / 20))
    out.push(`no data for the first ${formatDuration(quality.first - bounds.from)}`);
  if (typeof quality.unnamed_share === 'number' && quality.unnamed_share > 0.05)
    out.push(`${formatPercent(quality.unnamed_share)} missing symbols`);
  out.push(...pendingNames(quality));
  if (quality.cut > 0 && quality.total > 0 && quality.cut / quality.total > 0.001)
    out.push(`${formatPercent(quality.cut / quality.total)} in frames too small to draw`);
  for (const { service, source, by, others, unused } of quality.sources ?? [])
    out.push(by
      ? `${service} from ${source}, and from ${(others ?? []).join(', ')} for some values of ${by}`
      : `${service} from ${source}, ignoring ${unused.join(', ')}`);
  if (quality.dropped) out.push(`${plural(quality.dropped, 'sample')} lost`);
  if (quality.capped_labels)
    out.push(`${plural(quality.capped_labels, 'label')} above the limit of values, folded into "other"`);
  if (quality.damaged_blocks > 0 || quality.damaged_files > 0)
    out.push('some data is damaged and missing');
  return out;
}

function factsOf(quality: Quality, bounds: Bounds | null, utc: boolean): string[] {
  return [
    bounds ? formatBounds(bounds, utc) : '',
    plural(quality.samples, 'sample'),
    plural(quality.windows, 'window'),
    typeof quality.hosts === 'number' ? plural(quality.hosts, 'host') : '',
    typeof quality.windows_covered === 'number'
      ? `${formatPercent(quality.windows_covered)} of the range covered` : '',
    typeof quality.unnamed_share === 'number' && quality.unnamed_share <= 0.05
      ? `${formatPercent(1 - quality.unnamed_share)} named` : '',
  ].filter((fact) => fact !== '');
}

export interface QualitySide {
  quality: Quality;
  bounds: Bounds;
  title?: string;
}

// What an answer rests on, or each side of a comparison: one line, which opens to all of it.
export function QualityLine({ sides, words = '', bare = false }:
  { sides: readonly QualitySide[]; words?: string; bare?: boolean }) {
  const { utc } = useSettings();
  const [open, setOpen] = useState(false);
  const line = useRef<HTMLDivElement>(null);
  const [cut, setCut] = useState(false);
  const facts = sides.map(({ quality, bounds, title }) => ({
    title, doubts: doubts(quality, bounds), facts: factsOf(quality, bare ? null : bounds, utc),
  }));
  useEffect(() => {
    const element = line.current;
    if (!element) return undefined;
    const look = () => setCut(element.scrollWidth > element.clientWidth + 1);
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, [facts.map(({ doubts: d, facts: f }) => [...d, ...f].join()).join(), words, open]);
  // A line breaks behind a fact, never within one. What is doubtful comes first, where it is seen.
  return (
    <div class={open ? 'quality open' : 'quality'} role="group" aria-label="Data quality">
      <div class="quality-line" ref={line}>
        {words !== '' && <span class="fact">{words}</span>}
        {facts.map(({ title, doubts: doubtful, facts: certain }) => (
          <span key={title} class="fact-group">
            {title && <b>{title} </b>}
            {[...doubtful.map((text) => [text, true] as const), ...certain.map((text) => [text, false] as const)]
              .map(([text, doubt], i, all) => (
                <>{i > 0 && ' '}<span class={doubt ? 'fact doubt' : 'fact'}>
                  {text}{i < all.length - 1 && ' ·'}</span></>
              ))}
          </span>
        ))}
      </div>
      {(cut || open) && <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? 'less' : 'more'}</button>}
    </div>
  );
}
