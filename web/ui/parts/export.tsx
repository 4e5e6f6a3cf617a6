// SPDX-License-Identifier: Apache-2.0
// Taking what is shown along: as a file of any format, as a picture, or as a link that shows the same
// tomorrow.

import { useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import { copyText } from '../../flame/dom';
import { fileName } from '../names';
import { Icon } from './icon';

type Format = readonly [format: string, title: string, suffix: string];

const FORMATS: readonly Format[] = [
  ['pprof', 'pprof', '.pb.gz'], ['folded', 'Folded stacks', '.folded'],
  ['speedscope', 'speedscope', '.speedscope.json'], ['otlp', 'OpenTelemetry', '.otlp'],
  ['svg', 'Picture (SVG)', '.svg'], ['html', 'Page (HTML)', '.html'],
];
// Of what is compared: it has two sides, which files of profiles don't have.
export const PICTURES = ['svg', 'html'];

function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export interface ExportProps {
  // Makes what is shown in a format; the server does, mostly.
  make: (format: string) => Promise<Blob>;
  formats?: readonly string[]; // all unless told
  title: string;
  app: () => FlameApp | null;
}

export function Export({ make, formats, title, app }: ExportProps) {
  const details = useRef<HTMLDetailsElement>(null);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const name = fileName(title);

  async function take(suffix: string, blob: Promise<Blob>) {
    setProblem('');
    setBusy(true);
    try {
      save(await blob, name + suffix);
      if (details.current) details.current.open = false;
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  }
  function picture(): Promise<Blob> {
    const canvas = app()?.picture();
    return new Promise((resolve, reject) => {
      if (!canvas) reject(new Error('Show the graph first: the picture is of it.'));
      else canvas.toBlob((blob) => {
        if (blob) resolve(blob);
        else reject(new Error('The browser could not make a picture of a graph of this size.'));
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
              onClick={() => void take(suffix, make(format))}>{words}</button>
          ))}
        <button type="button" class="link" disabled={busy}
          onClick={() => void take('.png', picture())}>Picture (PNG)</button>
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
      title={title ?? 'Copy a link with fixed times: it shows the same tomorrow'}>
      <Icon name="link" /> <span role="status">{done || 'Link'}</span>
    </button>
  );
}
