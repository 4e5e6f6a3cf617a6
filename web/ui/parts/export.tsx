// SPDX-License-Identifier: Apache-2.0
// Taking what is shown along: as a file of any format, as a picture, or as a link that shows the same
// tomorrow.

import { useRef, useState } from 'preact/hooks';
import { readProfile } from '../../flame/data/data';
import { copyText } from '../../flame/dom';
import { foldedDiff } from '../../flame/data/folded';
import { fileName } from '../data/names';
import { Icon } from './icon';

type Format = readonly [format: string, title: string, suffix: string];

const FORMATS: readonly Format[] = [
  ['pprof', 'pprof', '.pb.gz'], ['folded', 'Folded stacks', '.folded'],
  ['speedscope', 'speedscope', '.speedscope.json'], ['otlp', 'OpenTelemetry', '.otlp'],
  ['chrome-trace', 'Chrome trace, Perfetto', '.trace.json'], ['firefox', 'Firefox Profiler', '.firefox.json'],
  ['svg', 'Picture (SVG)', '.svg'], ['html', 'Page (HTML)', '.html'],
];
// Of selections of the store, whose samples have no times.
export const STACKS = ['pprof', 'folded', 'speedscope', 'otlp', 'svg', 'html'];
// Of what is compared: it has two sides, which most files of profiles don't have.
export const DIFFERENCES = ['folded', 'svg', 'html'];

const GAP_PX = 16;

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A comparison's stacks with both values each, out of its flame-data document.
export function foldedOf(data: unknown): Blob {
  const profile = readProfile(data);
  return new Blob([foldedDiff(profile, profile.defaultType)]);
}

// Graphs that are shown side by side, in one picture; null where one of them is not shown.
export function besides(pictures: readonly (HTMLCanvasElement | null)[]): HTMLCanvasElement | null {
  const there = pictures.filter((one) => one !== null);
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  if (there.length < pictures.length || !context) return null;
  canvas.width = there.reduce((sum, { width }) => sum + width, GAP_PX * (there.length - 1));
  canvas.height = Math.max(...there.map(({ height }) => height));
  let left = 0;
  for (const one of there) {
    context.drawImage(one, left, 0);
    left += one.width + GAP_PX;
  }
  return canvas;
}

// Something else there is to take: a side of what is compared.
export interface ExportItem {
  words: string;
  name: string;
  make: () => Promise<Blob>;
}

export interface ExportProps {
  // Makes what is shown in a format; the server does, mostly.
  make: (format: string) => Promise<Blob>;
  formats?: readonly string[]; // all unless told
  more?: readonly ExportItem[];
  title: string;
  picture: () => HTMLCanvasElement | null | undefined;
}

export function Export({ make, formats, more = [], title, picture }: ExportProps) {
  const details = useRef<HTMLDetailsElement>(null);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);

  async function take(name: string, blob: Promise<Blob>) {
    setProblem('');
    setBusy(true);
    try {
      save(await blob, name);
      if (details.current) details.current.open = false;
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  }
  function draw(): Promise<Blob> {
    const canvas = picture();
    return new Promise((resolve, reject) => {
      if (!canvas) reject(new Error('Show the graph first, to export it as a picture.'));
      else canvas.toBlob((blob) => {
        if (blob) resolve(blob);
        else reject(new Error('The browser failed to draw a picture of this size.'));
      }, 'image/png');
    });
  }

  return (
    <details class="picker" ref={details} onKeyDown={(event) => {
      if (event.key !== 'Escape' || !details.current?.open) return;
      details.current.open = false;
      details.current.querySelector('summary')?.focus();
      event.stopPropagation();
    }}>
      <summary class="button"><Icon name="export" /> Export</summary>
      <div class="picker-panel picker-list">
        {FORMATS.filter(([format]) => !formats || formats.includes(format)).map(
          ([format, words, suffix]) => (
            <button type="button" key={format} class="link" disabled={busy}
              onClick={() => void take(fileName(title) + suffix, make(format))}>{words}</button>
          ))}
        <button type="button" class="link" disabled={busy}
          onClick={() => void take(`${fileName(title)}.png`, draw())}>Picture (PNG)</button>
        {more.map(({ words, name, make: makeIt }) => (
          <button type="button" key={words} class="link" disabled={busy}
            onClick={() => void take(fileName(name), makeIt())}>{words}</button>
        ))}
        <span class="hidden" role="status">{busy ? 'Being made' : ''}</span>
        {problem !== '' && <p class="problem" role="alert">{problem}</p>}
      </div>
    </details>
  );
}

// `link` is an address on this server.
export function CopyLink({ link, title }: { link: string; title?: string }) {
  const [done, setDone] = useState('');
  async function copy() {
    setDone(await copyText(location.origin + link) ? 'Copied' : 'Not copied');
    setTimeout(() => setDone(''), 2000);
  }
  return (
    <button type="button" class="button" onClick={copy}
      title={title ?? 'Copy a link with fixed times'}>
      <Icon name="link" /> <span role="status">{done || 'Link'}</span>
    </button>
  );
}
